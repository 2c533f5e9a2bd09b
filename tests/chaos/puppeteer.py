"""What the agents of a walk do: everything that agents do, at moments nobody chose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

from actors.waits import about, refusal
from ahpd.agents import events as ev
from ahpd.agents.port import AgentFailed
from ahpd.protocol.chat import BackgroundShellWork, BackgroundSubagentWork
from ahpd.protocol.common import ProtectedResourceMetadata
from ahpd.protocol.customizations import McpServerCustomization, McpServerReadyState
from ahpd.protocol.inputs import (
    ChatInputBooleanQuestion,
    ChatInputRequest,
    ChatInputTextQuestion,
)
from ahpd.protocol.tools import (
    ConfirmationOption,
    McpAuthRequirement,
    ToolCallRiskAssessmentLoadingState,
    ToolResultTextContent,
)
from tests.harness import Puppet, PuppetAgent

_OPTIONS = (
    ConfirmationOption(id="once", label="Once", kind="approve"),
    ConfirmationOption(id="never", label="Never", kind="deny"),
)


_QUESTIONS = (
    ChatInputTextQuestion(id="name", message="Name?", required=True),
    ChatInputBooleanQuestion(id="sure", message="Sure?"),
)
_NEEDS = McpAuthRequirement(
    reason="required", resource=ProtectedResourceMetadata(resource="https://x.example/mcp")
)
_SERVER = McpServerCustomization(id="s", uri="mcp:s", name="S", state=McpServerReadyState())
_NOW = "2026-09-21T14:13:20.000Z"


def _flat(events: Iterable[ev.Event]) -> Iterator[ev.Event]:
    """The same with what workers say in the place of what says it."""
    for event in events:
        if isinstance(event, ev.WorkerSays):
            yield from _flat(event.events)
        else:
            yield event


class Puppeteer:
    """Pulls the strings of all puppets of an agent."""

    def __init__(self, agent: PuppetAgent) -> None:
        self.agent = agent
        self._calls = 0
        #: Open calls of each puppet's turn: id -> whether it may run.
        self._open: dict[int, dict[str, bool]] = {}
        self._turns: dict[int, str] = {}
        #: Workers, and work beside turns, of each puppet.
        self._workers: dict[int, list[str]] = {}

    def lose_all(self) -> None:
        """Their processes have ended with the host's."""
        agent = self.agent
        agent.made.clear()
        agent.of.clear()
        for each in (self._open, self._turns, self._workers):
            each.clear()

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
        match dice.randrange(31):
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
            case 19 | 20:
                self._ask(puppet, dice)
            case 21 | 22:
                self._put_to_work(puppet, dice)
            case 23 | 24:
                self._go_on_beside(puppet, dice)
            case 25 | 26 | 27:
                self._question(puppet)
            case 28:
                puppet.say(ev.SystemNotice("Compacted"))
            case 29:
                self._describe(puppet, dice)
            case _:
                puppet.hear()

    # ---- questions, workers, work beside turns ----------------------------------------------

    def _new(self, what: str) -> str:
        self._calls += 1
        return f"{what}{self._calls}"

    def _ask(self, puppet: Puppet, dice: Random) -> None:
        call = self._new("call")
        begin = (ev.ToolStarted(call, "look", "Look"), ev.ToolReady(call, "Looks", "{}"))
        match dice.randrange(4):
            case 0:
                puppet.say(*begin, ev.ToolFinished(call, True, "Looked", asks_approval=True))
            case 1:
                puppet.say(*begin, ev.ToolNeedsAuth(call, "s", _NEEDS))
            case 2:
                risk = ev.RiskJudged(call, ToolCallRiskAssessmentLoadingState(kind="judge"))
                puppet.say(begin[0], ev.ToolAsks(call, "Look?", "{}", options=_OPTIONS), risk)
            case _:
                self._question(puppet)

    def _question(self, puppet: Puppet) -> None:
        request = ChatInputRequest(id=self._new("question"), questions=_QUESTIONS)
        puppet.say(ev.QuestionsAsked(request))

    def _put_to_work(self, puppet: Puppet, dice: Random) -> None:
        worker = self._new("worker")
        self._workers.setdefault(id(puppet), []).append(worker)
        call = f"{worker}-call"
        puppet.say(
            ev.ToolStarted(call, "task", "Delegate"),
            ev.ToolReady(call, "Delegates"),
            ev.WorkerStarted(worker, call, "Worker"),
            ev.WorkerSays(worker, (ev.TextChunk("I begin. "),)),
        )
        if dice.random() < 0.3:
            work = BackgroundSubagentWork(id=worker, label="Worker", started_at=_NOW, chat="")
            puppet.say(ev.BackgroundSet(work, worker=worker))

    def _go_on_beside(self, puppet: Puppet, dice: Random) -> None:
        """A worker goes on, in the turn or beside it; or a command does."""
        workers = self._workers.get(id(puppet), [])
        speak = puppet.say if dice.random() < 0.6 else puppet.mutter
        if not workers or dice.random() < 0.2:
            shell = BackgroundShellWork(id="shell", label="B", started_at=_NOW, command="make")
            speak(ev.BackgroundSet(shell) if dice.random() < 0.5 else ev.BackgroundGone("shell"))
            return
        worker = dice.choice(workers)
        match dice.randrange(4):
            case 0:
                speak(ev.WorkerSays(worker, (ev.TextChunk("And on. "), ev.UsageReport(1))))
            case 1:
                speak(ev.WorkerEnded(worker, ev.Done()))
            case 2:
                request = ChatInputRequest(id=self._new("question"), questions=_QUESTIONS)
                speak(ev.WorkerSays(worker, (ev.QuestionsAsked(request),)))
            case _:
                call = self._new("call")
                asks = (ev.ToolStarted(call, "shell", "Run"), ev.ToolAsks(call, "Run it?", "{}"))
                speak(ev.WorkerSays(worker, asks))

    def _describe(self, puppet: Puppet, dice: Random) -> None:
        commands = tuple(ev.Command(f"do{n}", is_skill=n > 1) for n in range(dice.randrange(4)))
        servers = (_SERVER,) if dice.random() < 0.8 else ()
        meta = ev.MetaChanged(dice.choice([None, {"ahpd.model": "m"}, {"ahpd.model": "n"}]))
        puppet.mutter(ev.CommandsChanged(commands), ev.CustomizationsChanged(servers), meta)

    def unanswered(self, puppet: Puppet) -> set[str]:
        """What it asked and was never answered."""
        refusals = (refusal(event) for event in _flat(puppet.said))
        asked = {about(each) for each in refusals if each is not None}
        return asked - {about(each) for each in puppet.answers}

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
        if dice.random() < 0.4:
            puppet.say(ev.ClientToolCalled(call, "open", "Open", "{}"))
            return  # its client's to run
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
        for puppet in self.agent.made:
            for worker in self._workers.pop(id(puppet), ()):
                puppet.mutter(ev.WorkerEnded(worker, ev.Done()), ev.BackgroundGone(worker))
        for puppet in self.working():
            puppet.hear()
            puppet.end(ev.Done())
