"""What the host knows beside states, as JSON for the journal and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from actors.clients import Baseline
from actors.ledger import Heritage, Notes
from actors.paging import Window
from ahpd.agents.port import Attached, Remarks, Transcript
from ahpd.protocol.annotations import Annotation
from ahpd.protocol.chat import Turn
from ahpd.protocol.codec import decoder
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import URI

# ---- notes --------------------------------------------------------------------------------------


def notes_json(notes: Notes) -> JSON:
    """The small ones, without what has a place of its own: `heritage`, `attached`, `summary`."""
    return {
        "began": list(notes.began),
        "starter": notes.starter,
        "senders": dict(notes.senders),
        "scoped": sorted(notes.chat_scoped),
        "settings": notes.settings,
        "metas": dict(notes.metas),
        "cut": None if notes.cut is None else list(notes.cut),
        "made": notes.chats_made,
        "conversation": notes.conversation,
        "retained": notes.retained,
        # They are kept one by one: how many there have to be.
        "attached": len(notes.attached),
    }


def notes_of(value: Any, heritage: JSON, attached: dict[str, JSON]) -> Notes:
    """What `notes_json` and the others gave. Raises `ValueError` and the like for anything else."""
    cut = value["cut"]
    turn_id, ms = value["began"]
    if len(attached) != value["attached"]:
        raise ValueError(f"of {value['attached']} attachments {len(attached)} are there")
    return Notes(
        began=(turn_id, ms),
        starter=value["starter"],
        senders=value["senders"],
        chat_scoped=frozenset(value["scoped"]),
        settings=value["settings"],
        metas=value["metas"],
        cut=None if cut is None else (cut[0],),
        heritage=Heritage() if heritage is None else heritage_of(heritage),
        attached={key: attached_of(each) for key, each in attached.items()},
        chats_made=value["made"],
        # Journals of before there were any lack these.
        conversation=value.get("conversation"),
        retained=value.get("retained", False),
    )


def heritage_json(heritage: Heritage) -> JSON:
    """What a chat's agent is to know of another chat."""
    return {
        "history": [turn.wire() for turn in heritage.history],
        "context": [turn.wire() for turn in heritage.context],
        "selection": heritage.selection,
        "attached": {key: attached_json(each) for key, each in heritage.attached.items()},
    }


def heritage_of(value: Any) -> Heritage:
    """See `heritage_json`."""
    return Heritage(
        history=_turns(value["history"]),
        context=_turns(value["context"]),
        selection=value["selection"],
        attached={key: attached_of(each) for key, each in value["attached"].items()},
    )


def attached_json(attached: Sequence[Attached]) -> JSON:
    """What the attachments of one message stand for."""
    return [
        {"chat": each.chat, "turns": [turn.wire() for turn in each.turns]}
        if isinstance(each, Transcript)
        else {"channel": each.channel, "annotations": [it.wire() for it in each.annotations]}
        for each in attached
    ]


def attached_of(value: Any) -> tuple[Attached, ...]:
    """See `attached_json`."""
    read = decoder(Annotation)
    return tuple(
        Transcript(each["chat"], _turns(each["turns"]))
        if "chat" in each
        else Remarks(each["channel"], tuple(map(read, each["annotations"])))
        for each in value
    )


def _turns(value: Any) -> tuple[Turn, ...]:
    return tuple(map(decoder(Turn), value))


# ---- clients ------------------------------------------------------------------------------------


def baselines_json(baselines: dict[URI, Baseline]) -> JSON:
    """What a client was given, and up to where it holds turns."""
    return {
        uri: [each.seq, None if each.window is None else [list(step) for step in each.window.steps]]
        for uri, each in baselines.items()
    }


def baselines_of(value: Any) -> dict[URI, Baseline]:
    """See `baselines_json`."""
    return {
        uri: Baseline(seq, None if steps is None else Window.of((a, b) for a, b in steps))
        for uri, (seq, steps) in value.items()
    }
