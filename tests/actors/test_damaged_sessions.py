"""A host that starts on a file in which something is damaged: the rest serves, bytes are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahpd.journal.port import JournalFailed
from ahpd.journal.sqlite import SqliteJournal
from ahpd.protocol.uris import ROOT
from tests.actors.restarting import Kept, kept
from tests.actors.support import C2, C, S, settled
from tests.harness import PuppetAgent, Refused
from tests.journal.support import sql


async def spoiled(it: Kept, path: Path, text: str, *values: object) -> None:
    """Kill the host, change its file, and start another one."""
    await settled()
    await it.host.kill()
    sql(path, text, *values)
    it.agent = PuppetAgent()
    it.host.agents = (it.agent,)
    await it.host.start()
    await settled()


def file_of(folder: Path) -> Path:
    [found] = [each for each in folder.rglob("*") if each.suffix == ".db"]
    return found


async def test_a_chat_that_is_damaged_is_taken_out_of_its_session(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        path = file_of(tmp_path)
        await it.ann.request("createChat", channel=S, chat=C2)
        await spoiled(it, path, "UPDATE channels SET state = x'7b' WHERE uri = ?", C)
        ann = await it.again(ROOT)
        await ann.subscribe(S)
        [row] = it.host.ledger.channels[S].state.chats
        assert (row.resource, it.host.ledger.channels[S].state.default_chat) == (C2, C2)
        await ann.subscribe(C2)
        with pytest.raises(Refused):
            await ann.request("subscribe", channel=C)
        assert sql(path, "SELECT kept FROM damaged WHERE kept = 'channels'") == [("channels",)]


async def test_a_session_whose_only_chat_is_damaged_is_gone_and_its_uri_free(
    tmp_path: Path,
) -> None:
    async with kept(tmp_path) as it:
        path = file_of(tmp_path)
        await spoiled(it, path, "UPDATE channels SET state = x'7b' WHERE uri = ?", C)
        ann = await it.again(ROOT)
        with pytest.raises(Refused):
            await ann.request("subscribe", channel=S)
        assert (await ann.request("listSessions"))["items"] == []
        kinds = sql(path, "SELECT count(*) FROM damaged WHERE kept = 'channels'")
        assert kinds[0][0] >= 2  # what is of no use without it, too
        await ann.request("createSession", channel=S)
        await ann.subscribe(C)


async def test_how_a_session_is_listed_is_found_out_again(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        path = file_of(tmp_path)
        await it.ann.dispatch(S, {"type": "session/titleChanged", "title": "Mine"})
        await spoiled(it, path, "UPDATE channels SET summary = x'00' WHERE uri = ?", S)
        ann = await it.again(ROOT)
        [item] = (await ann.request("listSessions"))["items"]
        assert (item["resource"], item["title"]) == (S, "Mine")
        await ann.subscribe(S)


async def test_b29_a_session_that_cannot_be_loaded_now_is_there_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the medium is no reason to think that there is nothing."""
    load = SqliteJournal._load
    async with kept(tmp_path) as it:
        path = file_of(tmp_path)
        await it.restart()

        def fails(self: SqliteJournal, uri: str) -> None:
            raise JournalFailed(f"reading {self.path} failed (input/output error)")

        monkeypatch.setattr(SqliteJournal, "_load", fails)
        ann = await it.again(ROOT)
        with pytest.raises(Refused, match="input/output error") as refused:
            await ann.request("subscribe", channel=S)
        assert refused.value.code == -32603
        assert [each["resource"] for each in (await ann.request("listSessions"))["items"]] == [S]
        assert sql(path, "SELECT count(*) FROM damaged") == [(0,)]
        monkeypatch.setattr(SqliteJournal, "_load", load)
        await ann.subscribe(S)
        await ann.subscribe(C)
