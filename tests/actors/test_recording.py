"""What the journal has yet to be told, also when nobody knows what became of the last batch."""

from __future__ import annotations

from typing import Any

import attrs

from actors.clients import Clients
from actors.ledger import Channel, Ledger
from actors.recording import Recorder
from actors.replay import ReplayWindow
from ahpd.agents.port import Transcript
from ahpd.journal.port import ChannelFacts
from ahpd.protocol.chat import ChatState, Turns
from ahpd.protocol.jsontext import loads
from tests.actors.support import NOW, C, S


@attrs.define
class Room:
    ledger: Ledger
    recorder: Recorder
    chat: Channel

    def write(self, *, sure: bool = True) -> Any:
        """The next batch; unless `sure`, nobody hears whether it was written."""
        taken = self.recorder.take(self.ledger.queue)
        self.ledger.queue.clear()
        if sure:
            self.recorder.kept(taken, {})
        return taken.batch

    def facts(self, *, sure: bool = True) -> ChannelFacts:
        facts: ChannelFacts = self.write(sure=sure).channels[0]
        return facts


def room() -> Room:
    ledger, clients = Ledger(), Clients()
    recorder = Recorder(ledger, clients, ReplayWindow(0))
    state = ChatState(resource=C, title="", status=1, modified_at=NOW, turns=Turns())
    return Room(ledger, recorder, ledger.open(C, "chat", state, "session/s/chat/0", S))


def test_what_is_told_once_is_not_told_again() -> None:
    it = room()
    assert it.facts().uri == C
    assert not it.recorder.has_news
    it.chat.note(starter="ann")
    it.chat.consume("t1")
    facts = it.facts()
    assert (facts.used_from, list(facts.used), facts.heritage) == (0, ["t1"], None)
    it.chat.consume("t2")
    facts = it.facts()
    assert (facts.used_from, list(facts.used), facts.notes) == (1, ["t2"], None)


def test_a_channel_that_may_have_been_written_is_ended_in_the_journal_too() -> None:
    it = room()
    it.write(sure=False)
    it.ledger.close(it.chat)
    assert it.write().closed == [it.chat.key]
    assert not it.recorder.has_news


def test_notes_that_may_have_been_written_and_are_as_before_again_are_told() -> None:
    it = room()
    it.write()
    it.chat.note(starter="ann")
    it.write(sure=False)
    it.chat.note(starter=None)
    facts = it.facts()
    assert facts.notes is not None
    notes: Any = loads(facts.notes)
    assert notes["starter"] is None
    it.chat.note(starter=None)
    assert it.facts().notes is None


def test_an_attachment_that_may_have_been_written_is_forgotten_when_it_is_not_needed() -> None:
    it = room()
    it.write()
    it.chat.note(attached={"m": (Transcript(C),)})
    it.write(sure=False)
    it.chat.note(attached={})
    assert it.facts().attached == {"m": None}


def test_a_place_that_may_have_been_written_is_told_again() -> None:
    it = room()
    it.write()
    it.chat.move("puppet:/other", "session/other/chat/0")
    it.write(sure=False)
    it.chat.move(S, "session/s/chat/0")
    assert it.facts().owner == S
