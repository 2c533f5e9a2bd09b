"""What is found of the agents, once they were asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ahpd.agents.acp.probing import Answer
from ahpd.agents.script import ScriptError, load_script
from ahpd.daemon.agents import Listed, listed_agents
from ahpd.daemon.doctor.findings import Finding, Subject, Teller

_AGENTS = "agents"


def findings(subject: Subject, answers: Mapping[str, Answer]) -> Iterator[Finding]:
    """One for each agent that is configured or found here; `answers` by name, of those asked."""
    agents = [each for each in listed_agents(subject.config) if each.source != "known"]
    if not agents:
        yield Teller(_AGENTS, "demo").warn(
            "no agent is configured, and none is found: there is only the built-in script",
            "ahpd agents lists what can be installed",
        )
    for each in agents:
        tell = Teller(_AGENTS, each.name)
        yield (
            _of_program(each, tell, answers.get(each.name))
            if each.command
            else _of_script(subject, each, tell)
        )


def _of_script(subject: Subject, agent: Listed, tell: Teller) -> Finding:
    script = subject.config.agents[agent.name].script
    if script is None:
        return tell.ok("the built-in script")
    try:
        load_script(script)
    except ScriptError as error:
        return tell.fail(str(error), "a daemon does not start with it")
    return tell.ok(f"the script {script}")


def _of_program(agent: Listed, tell: Teller, answer: Answer | None) -> Finding:
    if agent.program is None:
        how = f"it comes by: {agent.install}" if agent.install else "install it, or say where it is"
        return tell.fail(f"there is no program {agent.command[0]}", how)
    if answer is None:
        return tell.ok(f"{agent.program}, not asked")
    if answer.problem is not None:
        told = _in_a_line(answer.problem)
        return tell.fail(f"it does not answer: {told}", f"try it: {' '.join(agent.command)}")
    version = answer.version or agent.version() or "of an unknown version"
    return tell.ok(f"answers: {agent.title or answer.title or agent.program}, {version}")


def _in_a_line(problem: str) -> str:
    """How it ended, and the last line of what it said, where a program has the reason."""
    lines = [each.strip() for each in problem.splitlines() if each.strip()]
    return " ".join(lines[:1] + lines[1:][-1:]) or "no word"


__all__ = ["Answer", "findings"]
