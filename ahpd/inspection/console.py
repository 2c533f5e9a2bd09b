"""`Console`: one person attached to one actor. Everybody's commands, one method each.

What is asked is answered; what happens otherwise is told in notifications. Leaving, in whatever
way, takes back all that was done here: holds, breakpoints, watches, a debugger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import trio

from actors.host import Host
from ahpd.inspection import names
from ahpd.inspection.breaks import Break
from ahpd.inspection.debugger import Debugger, Handle
from ahpd.inspection.injecting import Injector
from ahpd.inspection.looks import happening, mailbox_of, where_of
from ahpd.inspection.post import Happening, Post
from ahpd.inspection.python import Python
from ahpd.inspection.screen import Debugging, Screen
from ahpd.inspection.subjects import Subject
from ahpd.inspection.views import Found, Path, matches
from ahpd.inspection.words import brief, how_it_ended, size
from ahpd.protocol.actions import ACTIONS
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.jsonrpc import notification
from ahpd.protocol.model import JSON, Object
from supervisors import ActorGone, sys

#: Seconds between two looks at what is watched, and at the mailbox of a paused actor.
LOOK_EVERY = 0.1
#: The part of a paused actor's mailbox from which it is told that it fills.
FULL = 0.75
#: Names that are given to whoever types a path.
SHOWN = 200
#: Characters of one line that is typed for the debugger.
TYPED = 1 << 16
#: Actors without which nobody is served anything.
_CENTRAL = frozenset({"sequencer", "catalogue", "root"})


class Console:
    """See the module. `tell` puts a message out, and drops it for somebody who does not read."""

    def __init__(
        self,
        number: int,
        post: Post,
        host: Host,
        *,
        put: Callable[[JSON], bool],
        debugging: Debugging,
        nursery: trio.Nursery,
    ) -> None:
        self.name = f"console {number}"
        self.breaks: dict[int, Break] = {}
        self._post = post
        self._subject: Subject = post.subject
        self._host = host
        self._put = put
        self._lost = 0
        self._traces = False
        self._numbers = 0
        self._watches: dict[int, trio.CancelScope] = {}
        self._python = Python(self._subject, lambda text: self.tell(names.SAID, text=text))
        self._injector = Injector(self._subject)
        self._debugging = debugging
        #: What goes on beside the commands, for as long as the person is there.
        self._nursery = nursery
        self._screen: Screen | None = None
        self._told_full = False
        self.methods: Mapping[str, Callable[[Object], Any]] = {
            "status": self.status,
            "state": self.state,
            "mailbox": self.mailbox,
            "log": self.log,
            "where": self.where,
            "trace": self.trace,
            "pause": self.pause,
            "step": self.step,
            "continue": self.go_on,
            "break": self.break_on,
            "unbreak": self.unbreak,
            "keys": self.keys,
            "watch": self.watch,
            "unwatch": self.unwatch,
            "inject": self.inject,
            "kill": self.kill,
            "restart": self.restart,
            "py": self.py,
            "pdb": self.pdb,
            "input": self.input,
            "interrupt": self.interrupt,
        }

        post.come(self)

    # ---- coming and going ----------------------------------------------------------------------

    async def stay(self) -> None:
        """As long as the person is there; then all is as it was before they came."""
        try:
            while True:
                await trio.sleep(LOOK_EVERY)
                self._look_at_mailbox()
        finally:
            self.leave()

    def leave(self) -> None:
        """Take back all that was done here. Sync; harmless twice."""
        self.breaks.clear()
        for scope in self._watches.values():
            scope.cancel(reason="whoever watched left")
        if self._screen is not None:
            self._screen.leave()
        self._post.leave(self)

    def tell(self, what: str, **more: object) -> None:
        """See `Watcher`."""
        if not self._put(notification(what, dict(more))):
            self._lost += 1
        elif self._lost:
            self._put(notification(names.LOST, {"count": self._lost}))
            self._lost = 0

    def traced(self, event: Happening) -> None:
        """See `Watcher`."""
        if event.kind == "handled":
            answer = self._injector.answer_to(event.message)
            if answer is not None:
                self.tell(names.NOTE, text=f"{brief(event.message)}: {answer}")
        if self._traces:
            self.tell(names.TRACE, **happening(event))

    def _look_at_mailbox(self) -> None:
        """Say once when the mailbox of a paused actor fills."""
        box = self._subject.ref.statistics()
        if box is None or not self._post.holders:
            self._told_full = False
            return
        cell = self._subject.ref.cell
        spec = cell.mailbox.spec if cell is not None else None
        if spec is None or self._told_full:
            return
        if box.depth >= FULL * spec.items or box.size >= FULL * spec.size or box.senders_waiting:
            self._told_full = True
            text = f"its mailbox fills: {box.depth} messages, {size(box.size)}"
            if box.senders_waiting:
                text += f"; {box.senders_waiting} senders wait for room"
            self.tell(names.NOTE, text=text)

    # ---- looking -------------------------------------------------------------------------------

    async def status(self, params: Object) -> dict[str, JSON]:
        """Who is attached, what it does, and what holds it."""
        self._subject.check()
        seen = sys.glance(self._subject.system, self._subject.path)
        assert seen is not None, "checked above"
        channel = self._subject.channel
        return {
            "you": self.name,
            "path": self._subject.path,
            "kind": seen.kind,
            "phase": seen.phase,
            "channel": channel.uri if channel is not None else None,
            "inHand": None if seen.in_hand is None else brief(seen.in_hand),
            "waiting": seen.mailbox.depth + seen.mailbox.urgent if seen.mailbox is not None else 0,
            "handled": seen.handled,
            "restarts": seen.restarts,
            "heldBecause": list(self._post.holders.values()),
            "attached": [each.name for each in self._post.watchers],
            "breaks": [
                {"number": each.number, "of": watcher.name, "on": str(each)}
                for watcher in self._post.watchers
                for each in watcher.breaks.values()
            ],
            "lastExit": None if seen.last_exit is None else how_it_ended(seen.last_exit),
        }

    async def attached(self) -> JSON:
        """What the person is told first: the status, and the types that actions have."""
        return {**await self.status({}), "actions": list(ACTIONS)}

    async def state(self, params: Object) -> JSON:
        """``{"path": JSONPath, "at": number}``, both as one likes."""
        path = Path(_text(params, "path") or "$")
        number = params.get("at")
        if number is None:
            state = self._subject.state()
        elif isinstance(number, int) and not isinstance(number, bool) and number >= 0:
            state = await self._subject.state_at(number)
        else:
            raise _wrong("at: expected a number that an envelope may have")
        channel = self._subject.channel
        found = await path.found_in(state)
        if not found:
            raise _wrong(f"{path.text}: there is nothing there")
        seq = channel.seq if channel is not None else None
        return {"matches": matches(found), "seq": seq if number is None else number}

    async def mailbox(self, params: Object) -> JSON:
        """What waits, in the order in which it will be taken."""
        return mailbox_of(self._subject)

    async def log(self, params: Object) -> JSON:
        """The last ``count`` messages that were taken since somebody is attached."""
        count = _count(params, "count", 20)
        return {"messages": [happening(each) for each in list(self._post.recent)[-count:]]}

    async def where(self, params: Object) -> JSON:
        """Where each of its tasks waits, outermost frame first."""
        return where_of(self._subject)

    async def trace(self, params: Object) -> JSON:
        """Tell everything that it does, or no more."""
        on = params.get("on")
        if not isinstance(on, bool):
            raise _wrong("on: expected true or false")
        self._traces = on
        return {"on": on}

    async def keys(self, params: Object) -> JSON:
        """What the objects at a JSONPath of its state have, for whoever types one."""
        path = Path(_text(params, "path") or "$")
        return {"keys": path.keys_in(self._subject.state())[:SHOWN]}

    async def watch(self, params: Object) -> JSON:
        """Tell what is at a JSONPath of its state whenever that changes; what it is now."""
        path = Path(_text(params, "path") or "$")
        state = self._subject.state()
        found = await path.found_in(state)
        self._numbers += 1
        number, scope = self._numbers, trio.CancelScope()
        self._watches[number] = scope
        self._nursery.start_soon(self._watch, number, scope, path, state, found)
        return {"number": number, "path": path.text, "matches": matches(found)}

    async def _watch(
        self, number: int, scope: trio.CancelScope, path: Path, last: object, shown: Found
    ) -> None:
        with scope:
            while True:
                await trio.sleep(LOOK_EVERY)
                try:
                    state = self._subject.state()
                    if state is last:
                        continue
                    last, found = state, await path.found_in(state)
                except ProtocolError as error:
                    if self._subject.ref.alive:  # else it is just being started again
                        self.tell(names.NOTE, text=f"the watch {number} ended: {error.message}")
                        break
                    continue
                if found != shown:
                    shown, channel = found, self._subject.channel
                    seq = channel.seq if channel is not None else None
                    self.tell(
                        names.WATCHED,
                        number=number,
                        path=path.text,
                        matches=matches(found),
                        seq=seq,
                    )
        self._watches.pop(number, None)

    async def unwatch(self, params: Object) -> JSON:
        """End one watch, or all."""
        number = params.get("number")
        wanted = list(self._watches) if number is None else [number]
        for each in wanted:
            scope = self._watches.get(each) if isinstance(each, int) else None
            if scope is None:
                raise _wrong(f"there is no watch {each}")
            scope.cancel(reason="not wanted any more")
        return {"ended": len(wanted)}

    # ---- steering ------------------------------------------------------------------------------

    async def pause(self, params: Object) -> JSON:
        """Have it take no further message."""
        self._post.hold(self, f"paused by {self.name}")
        cell = self._subject.ref.cell
        assert cell is not None, "there is one to hold"
        box, spec = cell.mailbox.statistics(), cell.mailbox.spec
        in_hand = cell.life.in_hand if cell.life is not None else None
        room = f"{spec.items - box.depth} more messages, {size(spec.size - box.size)} at most"
        within = f"{self._host.settings.request_within:g} s"
        notes = [
            f"its mailbox takes {room}; then agents and connections wait for room",
            f"whoever calls it waits until the call's own deadline: requests of clients, {within}",
        ]
        if self._subject.path in _CENTRAL:
            notes.insert(0, "everybody's messages go through it: the whole host waits for it")
        return {
            "inHand": None if in_hand is None else brief(in_hand[0]),
            "waiting": box.depth + box.urgent,
            "notes": notes,
        }

    async def step(self, params: Object) -> JSON:
        """Have it handle up to ``count`` messages; it must be paused."""
        count = _count(params, "count", 1)
        if not self._post.holders:
            raise _wrong("it is not paused; pause holds it between two messages")
        before = len(self._post.recent)
        last = self._post.recent[-1] if self._post.recent else None
        try:
            done = await sys.step(self._subject.ref, count)
        except ValueError:
            raise ProtocolError(
                ErrorCode.CONFLICT, "somebody else steps it, or it has just been resumed"
            ) from None
        self._post.still_held()
        events = list(self._post.recent)
        if last is not None and last in events:
            before = events.index(last) + 1
        return {"handled": done, "messages": [happening(each) for each in events[before:]]}

    async def go_on(self, params: Object) -> JSON:
        """Have it go on, whoever holds it."""
        return {"resumed": self._post.release(self)}

    async def break_on(self, params: Object) -> JSON:
        """``{"on": type, "if": expression}``: hold it where an action of that type is said."""
        type = _text(params, "on")
        if type is None:
            return {
                "breaks": [{"number": n, "on": str(each)} for n, each in self.breaks.items()],
            }
        made = Break(self._numbers + 1, type, _text(params, "if"))
        self._numbers += 1
        self.breaks[made.number] = made
        return {"number": made.number, "on": str(made)}

    async def unbreak(self, params: Object) -> JSON:
        """Take out one breakpoint, or all of one's own."""
        number = params.get("number")
        wanted = list(self.breaks) if number is None else [number]
        for each in wanted:
            if not isinstance(each, int) or each not in self.breaks:
                raise _wrong(f"you have no breakpoint {each}")
            del self.breaks[each]
        return {"removed": len(wanted)}

    async def inject(self, params: Object) -> JSON:
        """Put a message into its mailbox."""
        text = _text(params, "message")
        if not text:
            raise _wrong("message: expected an action in JSON, or an expression that makes one")
        return {"message": self._injector.inject(text)}

    async def kill(self, params: Object) -> JSON:
        """End this incarnation at once; its supervisor does what it does about any failure."""
        reason = _text(params, "reason") or f"killed by {self.name}"
        return {"killed": sys.kill(self._subject.ref, reason)}

    async def restart(self, params: Object) -> JSON:
        """Have its supervisor start it again, parked or not."""
        cell = self._subject.ref.cell
        if cell is None:
            raise ActorGone(self._subject.path, "no actor at this path")
        supervisor = self._subject.system.supervisor(cell.parent)
        await supervisor.restart_child(cell.spec.id)
        return {"restarted": True}

    # ---- code ----------------------------------------------------------------------------------

    async def py(self, params: Object) -> JSON:
        """Run Python between two of its messages; what that prints is told."""
        code = _text(params, "code")
        if code is None:
            raise _wrong("code: expected Python")
        return {"ran": await self._python.run(code)}

    async def pdb(self, params: Object) -> JSON:
        """Enter pdb in the handler of the next message; answered when that is over.

        A paused actor is let handle that one message, when there is one, and stays paused.
        """
        with self._debugging.by(self.name, self._subject.path):
            screen = self._screen = Screen(self.tell)
            debugger = Debugger(screen)
            over = trio.Event()
            ran: list[str] = []

            def around(handle: Handle) -> Handle:
                inner = debugger.around(handle)

                async def handled(message: Any) -> Any:
                    self._post.debugged(brief(message))
                    ran.append(brief(message))
                    try:
                        return await inner(message)
                    finally:
                        self._post.debugged(None)
                        over.set()

                return handled

            screen.debugger = debugger
            undo = sys.around_next(self._subject.ref, around)
            try:
                if self._post.holders:
                    await sys.step(self._subject.ref, 1)
                else:
                    await over.wait()
            finally:
                undo()
                screen.leave()
                self._screen = None
            self._post.still_held()
            return {"handled": ran[0] if ran else None}

    async def input(self, params: Object) -> JSON:
        """A line for the debugger."""
        text = params.get("text")
        if not isinstance(text, str) or len(text) > TYPED:
            raise _wrong(f"text: expected a line of at most {TYPED} characters")
        if self._screen is None:
            raise _wrong("no debugger of yours waits for anything")
        self._screen.type(text)
        return {}

    async def interrupt(self, params: Object) -> JSON:
        """Have the debugger stop at the next line that the handler comes to."""
        if self._screen is None or self._screen.debugger is None:
            raise _wrong("no debugger of yours is at work")
        self._screen.debugger.stop_soon()
        return {}


def _text(params: Object, key: str) -> str | None:
    value = params.get(key)
    if value is not None and not isinstance(value, str):
        raise _wrong(f"{key}: expected a text")
    return value


def _count(params: Object, key: str, default: int) -> int:
    value = params.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise _wrong(f"{key}: expected a number from 1 on")
    return value


def _wrong(why: str) -> ProtocolError:
    return ProtocolError(ErrorCode.INVALID_PARAMS, why)
