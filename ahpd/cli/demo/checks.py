"""What the demo checks at its end. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import attrs

from ahpd.cli import words
from ahpd.cli.demo.screen import Screen
from ahpd.client import Client
from ahpd.conformance.compare import differences
from ahpd.protocol.uris import URI

#: Differences that are shown.
_SHOWN = 10


@attrs.frozen
class Check:
    """One thing that must hold, and what was seen."""

    name: str
    ok: bool
    seen: str


def compare(
    screens: Sequence[Screen], witness: Client, channels: Sequence[URI]
) -> tuple[Check, list[str]]:
    """Whether what each screen holds of each channel equals what the host told the witness."""
    found: list[str] = []
    waiting = 0
    for channel in channels:
        fresh = witness.store(channel).confirmed.wire()
        for screen in screens:
            assert screen.client is not None
            store = screen.client.store(channel)
            waiting += len(store.pending)
            found += (
                f"{screen.name}: {channel}: {each}"
                for each in islice(
                    differences(fresh, store.confirmed.wire(), null_is_absent=False), _SHOWN
                )
            )
    seen = max(witness.store(channel).seen for channel in channels)
    same = f"{words.count(len(channels), 'channel')} each, at number {seen}"
    told = words.count(len(found), "difference") if found else same
    if waiting:
        told += f", {words.count(waiting, 'dispatch', 'dispatches')} without an answer"
    return Check("both screens equal the host", not found and not waiting, told), found[:_SHOWN]


def judge_crash(screens: tuple[Screen, Screen], *, lost: Sequence[str]) -> list[Check]:
    """What the screens' records prove after the host was killed; `lost` says what is not there."""
    return [
        _answers(screens),
        _endings(screens),
        *(_replay(screen, most_losses=None) for screen in screens),
        Check(
            "nothing that was accepted is lost",
            not lost,
            "all that was on a screen still is" if not lost else f"{lost[0]} is gone",
        ),
        _numbers(screens, "on both sides of the kill"),
    ]


def judge(screens: tuple[Screen, Screen], *, untouched: bool) -> list[Check]:
    """What the screens' records prove."""
    return [
        _answers(screens),
        _endings(screens),
        _replay(screens[0]),
        Check(
            "the lost actor touched one turn only",
            untouched,
            "all else is as before" if untouched else "something else changed",
        ),
        _numbers(screens, "the editor over two connections"),
    ]


def _numbers(screens: Sequence[Screen], seen: str) -> Check:
    went_back = any(screen.went_back for screen in screens)
    return Check("numbers only grew on each screen", not went_back, seen)


def _answers(screens: Sequence[Screen]) -> Check:
    operations = [each for screen in screens for each in screen.operations]
    kinds = [each.outcome.kind if each.outcome else "unanswered" for each in operations]
    told = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    return Check(
        "every dispatch was answered", "unanswered" not in kinds, f"of {len(kinds)}: {told}"
    )


def _replay(screen: Screen, *, most_losses: int | None = 1) -> Check:
    """It lost its connection, and got what it had missed and no snapshot.

    While there is no host each attempt to come back is lost too, so there may be more (None).
    """
    few = most_losses is None or screen.losses <= most_losses
    replayed = words.count(screen.replayed, "envelope")
    snapshots = words.count(screen.restored, "snapshot")
    return Check(
        f"the {screen.name} came back by replay",
        few and screen.losses > 0 and screen.replayed > 0 and not screen.restored,
        f"{replayed}, {snapshots if screen.restored else 'no snapshot'}",
    )


def _endings(screens: Sequence[Screen]) -> Check:
    """Each turn that the chat shows ended once on each screen, and no other turn ended."""
    ok, told = True, ""
    for screen in screens:
        chat = screen.chat_state
        turns = () if chat is None else chat.turns
        ok &= chat is not None and chat.active_turn is None
        ok &= dict(screen.endings) == {turn.id: 1 for turn in turns}
        told = ", ".join(words.ENDINGS.get(turn.state, turn.state) for turn in turns)
    return Check("every turn ended once on each screen", ok, told)
