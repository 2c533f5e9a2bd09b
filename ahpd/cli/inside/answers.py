"""How the daemon's answers are put for people; each gives lines. Nothing in them steers a terminal.

Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ahpd.cli.shown import line, safe
from ahpd.cli.tree_shown import bytes_shown

#: Frames of libraries are told from the host's own by their folders.
_FOREIGN = ("/site-packages/", "/lib/python")


def _json(value: Any) -> list[str]:
    return safe(json.dumps(value, indent=2, ensure_ascii=False)).splitlines()


def status(found: Any) -> list[str]:
    """What it does, and who is there."""
    lines = [
        f"{line(found['path'])}: {line(found['kind'])}, {line(found['phase'])}",
    ]
    handled, restarts = found["handled"], found["restarts"]
    lines.append(
        f"  handled {handled} messages, {found['waiting']} wait, restarted {restarts} times"
    )
    if found["channel"] is not None:
        lines.append(f"  channel {line(found['channel'])}")
    if found["inHand"] is not None:
        lines.append(f"  in hand: {line(found['inHand'])}")
    lines += [f"  {line(why)}" for why in found["heldBecause"]]
    lines += [f"  breakpoint {each['number']} of {each['of']}: {line(each['on'])}"
              for each in found["breaks"]]  # fmt: skip
    if found["lastExit"] is not None:
        lines.append(f"  ended last: {line(found['lastExit'])}")
    others = [each for each in found["attached"] if each != found["you"]]
    return [*lines, f"  attached: you{''.join(f', {each}' for each in others)}"]


def matches(found: Any) -> list[str]:
    """What is at a path; alone when that is one place."""
    if len(found) == 1:
        return _json(found[0]["value"])
    return [text for each in found for text in (f"{line(each['at'])}:", *_json(each["value"]))]


def state(found: Any) -> list[str]:
    """The state, or what of it was asked for."""
    seq = found.get("seq")
    return [*matches(found["matches"]), *([f"at number {seq}"] if seq is not None else [])]


def mailbox(found: Any) -> list[str]:
    """What waits."""
    if not found["count"]:
        return ["nothing waits"]
    head = (
        f"{found['count']} wait, {bytes_shown(found['bytes'])};"
        f" room for {found['limit']}, {bytes_shown(found['limitBytes'])}"
    )
    if found["sendersWaiting"]:
        head += f"; {found['sendersWaiting']} senders wait for room"
    lines = [head]
    for each in found["messages"]:
        call = " (called)" if each["call"] else ""
        lines.append(f"  {_seconds(each['ageSeconds']):>8}  {line(each['message'])}{call}")
    return [*lines, f"  … {found['more']} more"] if found["more"] else lines


def happened(each: Any) -> str:
    """Something that an actor did, in a line."""
    at = str(each["at"])[11:23]
    text = f"{at}  {line(each['kind'])}"
    if each.get("message") is not None:
        text += f"  {line(str(each['message']))}"
    if each.get("call"):
        text += " (called)"
    if each.get("tookSeconds") is not None:
        text += f"  in {_seconds(each['tookSeconds'])}"
    said = each.get("said") or ()
    return text + (f"  said {', '.join(map(line, said))}" if said else "")


def log(found: Any) -> list[str]:
    """The last messages."""
    return [happened(each) for each in found["messages"]] or ["nothing since you are attached"]


def where(found: Any) -> list[str]:
    """The await stacks, the frames of libraries only where nothing else follows."""
    lines = []
    if found["inHand"] is not None:
        lines.append(f"in hand: {line(found['inHand'])}")
    if found["waitsFor"] is not None:
        lines.append(f"waits for {line(found['waitsFor'])}")
    for task in found["tasks"]:
        lines.append(f"{line(task['task'])}:")
        frames = task["frames"]
        last = max((n for n, each in enumerate(frames) if not _is_foreign(each)), default=-1)
        for each in frames[: last + 1]:
            file = str(each["file"]).rpartition("/")[2]
            lines.append(f"  {line(each['function'])} ({line(file)}:{each['line']})")
            lines.append(f"    {line(each['text'])}")
        if not frames:
            lines.append("  has not begun")
    return lines or ["it does not run"]


def _is_foreign(frame: Any) -> bool:
    return any(part in str(frame["file"]) for part in _FOREIGN)


def trace(found: Any) -> list[str]:
    """Nothing but what follows."""
    return [] if found["on"] else ["no more"]


def pause(found: Any) -> list[str]:
    """That it is held, and what that means for others."""
    if found["inHand"] is not None:
        head = f"paused; it finishes what it has in hand first: {line(found['inHand'])}"
    else:
        head = f"paused; {found['waiting']} messages wait"
    return [head, *(f"  {line(each)}" for each in found["notes"])]


def step(found: Any) -> list[str]:
    """What it handled."""
    lines = [happened(each) for each in found["messages"]]
    return lines if found["handled"] else [*lines, "nothing waits to be handled"]


def resumed(found: Any) -> list[str]:
    """That is told to everybody."""
    return [] if found["resumed"] else ["it is not paused"]


def breaks(found: Any) -> list[str]:
    """The breakpoint, or all."""
    listed = found.get("breaks")
    if listed is None:
        return [f"breakpoint {found['number']}: {line(found['on'])}"]
    return [f"breakpoint {each['number']}: {line(each['on'])}" for each in listed] or [
        "you have no breakpoints"
    ]


def watched(found: Any) -> list[str]:
    """What is there, now or after a change."""
    head = f"watch {found['number']}, {line(found['path'])}"
    if found.get("seq") is not None:
        head += f", at number {found['seq']}"
    if not found["matches"]:
        return [f"{head}: nothing"]
    shown = matches(found["matches"])
    return [f"{head}: {shown[0]}"] if len(shown) == 1 else [f"{head}:", *shown]


def killed(found: Any) -> list[str]:
    """What comes of it is told to everybody."""
    return [] if found["killed"] else ["it does not run"]


def ran(found: Any) -> list[str]:
    """What it printed has been told."""
    return [] if found["ran"] else ["not run: the actor ended first, or does not run"]


def debugged(found: Any) -> list[str]:
    """The end of a debugger."""
    if found["handled"] is None:
        return ["no message waits, so there is no handler to enter; it is still paused"]
    return [f"pdb is over: {line(found['handled'])} was handled"]


def _fixed(text: str) -> Callable[[Any], list[str]]:
    return lambda found: [text.format(**found)]


unbroken = _fixed("{removed} taken out")
unwatched = _fixed("{ended} ended")
injected = _fixed("put in: {message}")
restarted = _fixed("it is up again")


def noticed(method: str, params: Any) -> list[str]:
    """A notification."""
    show = _NOTICES.get(method)
    return show(params) if show is not None else []


def _held(params: Any) -> list[str]:
    follows = params.get("message")
    return [f"* {line(params['why'])}" + (f"; next: {line(follows)}" if follows else "")]


def _lines_of(text: str) -> list[str]:
    return safe(text).rstrip("\n").split("\n")


_NOTICES: Mapping[str, Callable[[Any], list[str]]] = {
    "said": lambda params: _lines_of(str(params["text"])),
    "note": lambda params: [f"* {line(str(params['text']))}"],
    "trace": lambda params: [happened(params)],
    "watched": watched,
    "lost": lambda params: [f"* {params['count']} lines were left out"],
    "held": _held,
    "resumed": lambda params: [f"* goes on: {line(str(params['why']))}"],
    "ended": lambda params: [f"* ended: {line(str(params['why']))}"],
    "started": lambda _: ["* started again"],
    "debugged": lambda params: [f"* pdb is in {line(str(params['message']))}"],
}


def _seconds(value: float) -> str:
    if value < 0.001:
        return f"{value * 1e6:.0f} us"
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.1f} s"


def inspected(found: Any) -> list[str]:
    """Everything there is to see of an actor."""
    head = f"{line(found['path'])}: {line(found['kind'])}, {line(found['phase'])}"
    up = "" if found["upSeconds"] is None else f", up for {_seconds(found['upSeconds'])}"
    handled, restarts = found["handled"], found["restarts"]
    lines = [f"{head}{up}", f"handled {handled} messages, restarted {restarts} times"]
    last = found["lastExit"]
    if last is not None:
        lines.append(f"ended last: {line(last['text'])}")
        if last["traceback"] is not None:
            lines += [f"  {text}" for text in _lines_of(last["traceback"])]
    lines += ["", *where(found), "", "mailbox: " + mailbox(found["mailbox"])[0]]
    lines += mailbox(found["mailbox"])[1:]
    if found["state"] is None and found.get("stateMissing"):
        return [*lines, "", f"state: {line(found['stateMissing'])}"]
    at = f" at number {found['seq']}" if found["seq"] is not None else ""
    return [*lines, "", f"state{at}:", *_json(found["state"])]
