"""What ``ahpd doctor`` looks at: the machine, what a daemon keeps, and the agents.

Each check is a function that blocks and says what it found. They run beside each other in threads,
each bounded in time; a running daemon is not disturbed and nothing is changed. What only a running
daemon knows is asked by the command itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import trio

from ahpd.daemon.agents import Listed, ask_agents, listed_agents
from ahpd.daemon.doctor import agents, kept, machine
from ahpd.daemon.doctor.findings import Check, Finding, Level, Subject

#: Seconds that one check may take; those of the journal's content have their own limit below it.
WITHIN = 20.0
#: Checks at a time.
AT_ONCE = 8

#: In the order in which they are told.
CHECKS: Sequence[Check] = (*machine.CHECKS, *kept.CHECKS)


async def examine(
    subject: Subject,
    *,
    agents_within: float | None,
    moved: Callable[[int, int], None] = lambda _done, _of: None,
) -> list[Finding]:
    """All findings, in order. `agents_within`: seconds that each agent has to answer; None: none
    is started.

    `moved` is told how many of all checks are done. Cancelled, it leaves no process; a check that
    waits for a disk goes on in its thread until that answers.
    """
    asked = list(_installed(subject)) if agents_within is not None else []
    found: dict[int, list[Finding]] = {}
    limiter = trio.CapacityLimiter(AT_ONCE)
    done, of = 0, len(CHECKS) + len(asked)

    def count() -> None:
        nonlocal done
        done += 1
        moved(done, of)

    async def look(place: int, check: Check) -> None:
        found[place] = [Finding(check.group, check.name, Level.FAIL, f"no answer in {WITHIN:g} s")]
        with trio.move_on_after(WITHIN):
            found[place] = await trio.to_thread.run_sync(
                _findings, check, subject, abandon_on_cancel=True, limiter=limiter
            )
        count()

    answers: dict[str, agents.Answer] = {}

    def heard(agent: Listed, answer: agents.Answer) -> None:
        answers[agent.name] = answer
        count()

    async with trio.open_nursery() as nursery:
        for place, check in enumerate(CHECKS):
            nursery.start_soon(look, place, check)
        if agents_within is not None:
            await ask_agents(asked, heard, within=agents_within, handshake_only=True)
    told = [finding for place in range(len(CHECKS)) for finding in found[place]]
    return [*told, *agents.findings(subject, answers)]


def _installed(subject: Subject) -> Sequence[Listed]:
    return [each for each in listed_agents(subject.config) if each.program is not None]


def _findings(check: Check, subject: Subject) -> list[Finding]:
    return list(check.look(subject))


__all__ = ["CHECKS", "Finding", "Level", "Subject", "examine"]
