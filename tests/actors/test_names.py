"""What sessions, chats and working directories may be called, and what each fault is named."""

from __future__ import annotations

from typing import Any

import pytest

from actors.rules.names import LONGEST
from ahpd.protocol.root import MultipleWorkingDirectoriesCapability
from ahpd.protocol.uris import annotations_of, default_chat, worker_chat
from tests.actors.support import C2, S2, C, S, refused, room
from tests.harness import PuppetAgent, running_host
from tests.harness.replicas import state_of

#: What is no URI, or names no channel that a client could make.
NOWHERE = [
    ("", "no URI"),
    ("puppet", "no URI"),
    ("puppet:", "no URI"),
    ("puppet:///", "no URI"),
    (":/x", "no URI"),
    ("/tmp/x", "no URI"),
    ("1:/x", "no URI"),
    ("puppet:/a\nb", "control character"),
    ("puppet:/a\u202eb", "control character"),
    ("puppet:/" + "x" * LONGEST, "characters"),
    ("file:///etc", "names a resource"),
    ("FILE:///etc", "names a resource"),
    ("https://example.com/x", "names a resource"),
    ("ahp-root://x", "another kind"),
    ("AHP-ROOT://", "no URI"),
    ("ahp-automations://x", "another kind"),
    ("ahp-terminal:/x", "another kind"),
    ("agenthost-terminal:/x", "another kind"),
    ("puppet:/x/annotations", "reserved"),
    ("puppet:/x/changeset/session", "reserved"),
]
SESSIONS = [
    *NOWHERE,
    ("ahp-chat:/x", "another kind"),
    (default_chat(S2), "another kind"),
    (annotations_of(S2), "reserved"),
]
CHATS = [
    *NOWHERE,
    (S2, "names a session"),
    ("ahp-session:/x", "another kind"),
    (default_chat(S2), "reserved"),
    ("ahp-chat://default/@", "reserved"),
    (worker_chat(S, "call"), "reserved"),
    (annotations_of(S2), "reserved"),
]


@pytest.mark.parametrize(("uri", "why"), SESSIONS)
async def test_a_session_that_cannot_be_called_so_is_refused_and_takes_no_name(
    uri: str, why: str
) -> None:
    async with running_host() as host:
        ann = await room(host)
        before = list(host.ledger.channels)
        with refused(-32602, why):
            await ann.request("createSession", channel=uri)
        assert list(host.ledger.channels) == before
        await ann.request("createSession", channel=S2)


@pytest.mark.parametrize(("uri", "why"), CHATS)
async def test_a_chat_that_cannot_be_called_so_is_refused_and_takes_no_name(
    uri: str, why: str
) -> None:
    async with running_host() as host:
        ann = await room(host)
        before = list(host.ledger.channels)
        with refused(-32602, why):
            await ann.request("createChat", channel=S, chat=uri)
        assert list(host.ledger.channels) == before
        await ann.request("createSession", channel=S2)


async def test_a_name_of_any_other_scheme_is_its_makers_to_choose() -> None:
    async with running_host() as host:
        ann = await room(host)
        for uri in ("ahp-session:/x", "claude:/x", "x-mine:x", "puppet://host/x y?z#\u00e9"):
            await ann.request("createSession", channel=uri)
            await ann.request("createChat", channel=uri, chat=f"vscode-chat:/{uri}")


async def test_a_default_chat_that_was_ended_can_be_made_again() -> None:
    async with running_host() as host:
        ann = await room(host)
        await ann.request("createChat", channel=S, chat=C2)
        await ann.request("disposeChat", channel=C)
        await ann.request("createChat", channel=S, chat=C)
        assert {row["resource"] for row in state_of(host, S)["chats"]} == {C, C2}


FOLDERS: list[tuple[list[Any], str | None]] = [
    ([""], "[0]: "),
    (["nonsense"], "[0]: "),
    (["/srv"], "[0]: "),
    (["file:///srv", "../x"], "[1]: "),
    (["file:srv"], "absolute"),
    (["file://other/srv"], "this machine"),
    (["file://"], "absolute"),
    (["file:///a\x00b"], "control character"),
    (["file:///" + "x" * LONGEST], "characters"),
    (["https:"], "no URI"),
    (["file:///"], None),
    (["file:/srv"], None),
    (["file://localhost/srv"], None),
    (["file:///c%3A/x", "file:///srv/a b"], None),
    (["vscode-vfs://github/a/b"], None),
    ([], None),
]


@pytest.mark.parametrize(("folders", "why"), FOLDERS)
async def test_working_directories_are_uris_of_folders(folders: list[Any], why: str | None) -> None:
    agent = PuppetAgent(directories=MultipleWorkingDirectoriesCapability())
    async with running_host(agent) as host:
        ann = await room(host)
        if why is not None:
            with refused(-32602, why):
                await ann.request("createSession", channel=S2, workingDirectories=folders)
            assert host.ledger.find(S2) is None
        else:
            await ann.request("createSession", channel=S2, workingDirectories=folders)
            assert state_of(host, S2)["workingDirectories"] == folders


@pytest.mark.parametrize("config", [{"zzz": 1}, {"": None}, {"a": {"b": []}}])
async def test_r_8_13_settings_that_there_are_not_are_refused_by_name(
    config: dict[str, Any],
) -> None:
    async with running_host() as host:
        ann = await room(host)
        with refused(-32602, f"there is no setting {next(iter(config))}"):
            await ann.request("createSession", channel=S2, config=config)
        assert host.ledger.find(S2) is None
