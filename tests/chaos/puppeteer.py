"""What the agents of a walk do: everything that agents do, at moments nobody chose."""

from __future__ import annotations

from random import Random

from ahpd.agents import events as ev
from ahpd.agents.port import AgentFailed
from ahpd.protocol.tools import ConfirmationOption, ToolResultTextContent
from tests.harness import Puppet, PuppetAgent

_OPTIONS = (
    ConfirmationOption(id="once", label="Once", kind="approve"),
    ConfirmationOption(id="never", label="Never", kind="deny"),
)


class Puppeteer:
    """Pulls the strings of all puppets of an agent."""

    def __init__(self, agent: PuppetAgent) -> None:
        self.agent = agent
        self._calls = 0
        #: Open calls of each puppet's turn: id -> whether it may run.
        self._open: dict[int, dict[str, bool]] = {}
        self._turns: dict[int, str] = {}

    def working(self) -> list[Puppet]:
        """The puppets that have a turn to work on."""
        return [puppet for puppet in self.agent.made if puppet.prompted is not None]

    def act(self, dice: Random) -> None:
        """Have one of those that work do something."""
        puppets = self.working()
        if not puppets:
            return
        number = dice.randrange(len(puppets))
        puppet = puppets[number]
        calls = self._calls_of(puppet)
        match dice.randrange(20):
            case 0 | 1 | 2 | 3 | 4:
                puppet.say(*(ev.TextChunk(f"word{dice.randrange(100)} ") for _ in range(3)))
            case 5 | 6:
                puppet.say(ev.ThoughtChunk("hm "), ev.ThoughtChunk("so "))
            case 7 | 8:
                self._start_call(puppet, calls, dice)
            case 9 | 10 | 11:
                self._go_on(puppet, calls, dice)
            case 12:
                puppet.say(ev.UsageReport(input_tokens=dice.randrange(999), model="m"))
            case 13:
                puppet.say(ev.TitleProposed(f"About {dice.randrange(9)}"))
            case 14:
                puppet.say(ev.ActivityChanged(dice.choice([None, "Reading", "Writing"])))
            case 15 | 16:
                puppet.end(ev.Done())
            case 17:
                self._go_wrong(puppet, dice)
            case 18:
                puppet.deaf = True
            case _:
                puppet.hear()

    def _calls_of(self, puppet: Puppet) -> dict[str, bool]:
        assert puppet.prompted is not None
        turn = puppet.prompted.turn_id
        if self._turns.get(id(puppet)) != turn:
            self._turns[id(puppet)] = turn
            self._open[id(puppet)] = {}
        calls = self._open[id(puppet)]
        for permission in puppet.permissions:
            if not permission.approved:
                calls.pop(permission.call_id, None)
            elif permission.call_id in calls:
                calls[permission.call_id] = True
        puppet.permissions.clear()
        return calls

    def _start_call(self, puppet: Puppet, calls: dict[str, bool], dice: Random) -> None:
        self._calls += 1
        call = f"call{self._calls}"
        begin = (ev.ToolStarted(call, "shell", "Run"), ev.ToolInputChunk(call, '{"command":'))
        calls[call] = False
        match dice.randrange(4):
            case 0:
                puppet.say(*begin)
            case 1:
                puppet.say(*begin, ev.ToolReady(call, "Runs it", '{"command":"ls"}'))
                calls[call] = True
            case 2:
                puppet.say(*begin, ev.ToolAsks(call, "Run it?", "{}", editable=True))
            case _:
                puppet.say(*begin, ev.ToolAsks(call, "Run it?", "{}", options=_OPTIONS))

    def _go_on(self, puppet: Puppet, calls: dict[str, bool], dice: Random) -> None:
        ready = [call for call, may_run in calls.items() if may_run]
        if not ready:
            return
        call = dice.choice(ready)
        content = (ToolResultTextContent(text="a\nb"),)
        if dice.random() < 0.4:
            puppet.say(ev.ToolOutput(call, content))
        else:
            good = dice.random() < 0.7
            error = None if good else "exit 1"
            puppet.say(ev.ToolFinished(call, good, "Ran it", content, error))
            del calls[call]

    def _go_wrong(self, puppet: Puppet, dice: Random) -> None:
        match dice.randrange(4):
            case 0:
                puppet.end(ev.Failed("out of words", resumable=True))
            case 1:
                puppet.crash(AgentFailed("the process ended", resumable=True))
            case 2:
                puppet.crash(RuntimeError("a bug in the agent"))
            case _:
                puppet.end(ev.Stopped())

    def finish(self) -> None:
        """Everybody obeys, and ends what it works on."""
        self.agent.broken = None
        for puppet in self.working():
            puppet.hear()
            puppet.end(ev.Done())
