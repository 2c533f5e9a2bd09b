"""What becomes of an operation that a lost connection left without an answer: one table.

Pure. Judged after the reconnect was applied, against what the channel then shows. Whether an
operation is sent again is not the protocol's business but the client's: sending nothing again
loses a message that somebody typed, sending everything again runs it twice.

What is known about an operation, from most to least:

* ``unsent``: it was dispatched while there was no connection. The host cannot know it.
* ``absent``: it was sent, and a complete replay held no echo. It was not processed when the host
  built its answer; only a connection that lingers on the host's side could still bring it in, and
  against that the ids in the action help (R-5.30, R-6.20).
* ``unknown``: it was sent, and a snapshot came in place of what happened. Only ids in the state
  can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Literal, TypeAlias

import attrs

from ahpd.client import reading
from ahpd.protocol.actions import StateAction, action_type
from ahpd.protocol.chat_actions import ChatPendingMessageSetAction

Evidence: TypeAlias = Literal["unsent", "absent", "unknown"]


@attrs.frozen
class Resend:
    """Send the same action again, under the same number."""


@attrs.frozen
class Took:
    """The state proves that the host applied it."""


@attrs.frozen
class Replace:
    """Send another action in its place."""

    action: StateAction
    reason: str


@attrs.frozen
class Drop:
    """Do not send it; tell the user why."""

    reason: str


Verdict: TypeAlias = Resend | Took | Replace | Drop


@attrs.frozen
class Case:
    """An operation to judge.

    `confirmed` is the channel's state now, `view` the same with what was dispatched earlier and
    is sent again, `basis` the state that the user had seen. `superseded`: a later operation of
    this client sets the same thing.
    """

    action: Any
    evidence: Evidence
    client_id: str
    confirmed: Any
    view: Any
    basis: Any
    superseded: bool
    reduce: Callable[[Any, StateAction], Any]

    @property
    def changes_something(self) -> bool:
        """Whether it would still have an effect."""
        return self.reduce(self.view, self.action) is not self.view


Judge: TypeAlias = Callable[[Case], Verdict]

#: What an action sets, and what is there now: reads the state, given the action.
Read: TypeAlias = Callable[[Any, Any], Any]
#: What tells apart two things that actions of one type can set.
Target: TypeAlias = Callable[[Any], Hashable]


@attrs.frozen
class Rule:
    """How operations of one action type are judged; `target` where only the last one counts."""

    judge: Judge
    target: Target | None = None


_NO_EFFECT = "it would no longer change anything"


def _never(reason: str) -> Rule:
    return Rule(lambda _: Drop(reason))


def _while_it_changes(case: Case) -> Verdict:
    if case.superseded:
        return Drop("a later change of the same thing stands for it")
    return Resend() if case.changes_something else Drop(_NO_EFFECT)


def _last(read: Read, target: Target = lambda _: None) -> Rule:
    """Only the last value counts, and only if nobody else changed it meanwhile."""

    def judge(case: Case) -> Verdict:
        verdict = _while_it_changes(case)
        if isinstance(verdict, Resend) and read(case.confirmed, case.action) != read(
            case.basis, case.action
        ):
            return Drop("somebody else changed it meanwhile")
        return verdict

    return Rule(judge, target)


def _turn_started(case: Case) -> Verdict:
    action, chat = case.action, case.view
    if reading.has_turn(case.confirmed, action.turn_id):
        return Took()
    if chat.active_turn is not None:
        if case.evidence != "unsent":
            return Drop("another turn runs; it can be queued behind it")
        queued = ChatPendingMessageSetAction(
            kind="queued", id=action.turn_id, message=action.message
        )
        return Replace(queued, "another turn runs; it was queued behind it")
    if case.evidence == "unknown" and not reading.shows_all_since(chat, case.basis):
        return Drop("it may have run: not all turns since then are loaded")
    return Resend()


def _turn_cancelled(case: Case) -> Verdict:
    active = case.view.active_turn
    if active is None or active.id != case.action.turn_id:
        return Drop("that turn does not run any more")
    return Resend()


def _turn_resume(case: Case) -> Verdict:
    if case.evidence == "unknown":
        return Drop("it may have been resumed and have failed again")
    return _while_it_changes(case)


def _pending_message(case: Case) -> Verdict:
    action = case.action
    if action.kind == "steering":
        return _steering(case)
    there = reading.queued(case.view, action.id)
    if there is not None:
        taken = there.message == action.message and reading.queued(case.confirmed, action.id)
        return Took() if taken else Resend()
    if reading.queued(case.basis, action.id) is not None:
        return Drop("that message left the queue meanwhile")
    if case.evidence == "unknown":
        return Drop("it may have been queued, and have run")
    return Resend()


def _steering(case: Case) -> Verdict:
    action, there = case.action, case.view.steering_message
    if there is not None and there.id != action.id:
        return Drop("another message steers the turn now")
    if there is not None and there.message == action.message:
        return Took() if case.confirmed.steering_message == there else Resend()
    if there is None and case.evidence == "unknown":
        return Drop("it may have steered the turn already")
    return Resend()


def _own_tool_call(case: Case) -> Verdict:
    if case.superseded:
        return Drop("later output of the same call stands for it")
    if not reading.runs_for(case.view, case.action.tool_call_id, case.client_id):
        return Drop("that tool call is not waiting for this client any more")
    return Resend()


_DECISION = "the call may have been decided meanwhile: decide again on what is shown now"
_REQUEST = "what it was asked for may no longer be so: ask again"

#: Action type -> what becomes of it. Every action that a client may dispatch has a row.
RESEND: Mapping[str, Rule] = {
    # --- turns and messages: known by the ids that the client chose
    # Sent twice it wipes an answer or doubles a turn: only when the id is nowhere and none runs.
    "chat/turnStarted": Rule(_turn_started),
    # Harmless for the turn it names, wrong for any other: only while that very turn runs.
    "chat/turnCancelled": Rule(_turn_cancelled),
    # Runs the agent again: only when it surely was not taken, on a turn that is still in error.
    "chat/turnResume": Rule(_turn_resume),
    # An upsert while it waits; once consumed, the same id would run the same request again.
    "chat/pendingMessageSet": Rule(_pending_message),
    # Names its message; needless when that is gone.
    "chat/pendingMessageRemoved": Rule(_while_it_changes),
    # An order of messages that were there then; sent only if the queue is still the one sorted.
    "chat/queuedMessagesReordered": _last(reading.queue_ids),
    # Would cut away turns that came since.
    "chat/truncated": _never("the chat may have gone on since"),
    # --- decisions: whoever is first wins, and the first may have been another screen
    "chat/toolCallConfirmed": _never(_DECISION),
    "chat/toolCallResultConfirmed": _never(_DECISION),
    "chat/inputCompleted": _never("the questions may have been answered meanwhile"),
    # --- work of this client: of use only while the host still waits for it
    # After the grace period the host has failed the call, and a late result is not used.
    "chat/toolCallComplete": Rule(_own_tool_call),
    # Partial output, whole each time: the last one, while the call runs.
    "chat/toolCallContentChanged": Rule(_own_tool_call, lambda action: action.tool_call_id),
    # --- last value wins: sent when nobody else has touched it
    # A draft answer of one question; a closed request changes nothing any more.
    "chat/inputAnswerChanged": _last(
        reading.draft_answer, lambda action: (action.request_id, action.question_id)
    ),
    # The draft is shared: another screen may be writing.
    "chat/draftChanged": _last(lambda chat, _: chat.draft),
    # One bit of the status each; the activity beside it is not looked at.
    "chat/isReadChanged": _last(reading.read_bit),
    "chat/isArchivedChanged": _last(reading.archived_bit),
    "session/isReadChanged": _last(reading.read_bit),
    "session/isArchivedChanged": _last(reading.archived_bit),
    # A title is typed once; whoever renamed it since has the last word.
    "session/titleChanged": _last(lambda session, _: session.title),
    # Only the keys that are set; other keys may have changed freely.
    "session/configChanged": _last(reading.config_values, reading.config_target),
    "root/configChanged": _last(reading.config_values, reading.config_target),
    # All decisions for one entry, replaced whole.
    "session/customizationToggled": _last(reading.enablement, lambda action: action.id),
    # The review marks of the files it names.
    "changeset/filesReviewChanged": _last(
        reading.review_marks, lambda action: frozenset(action.files)
    ),
    # A swap in the list as it was: two swaps would not be one.
    "session/workingDirectoryReplaced": _last(reading.directories, lambda action: action.directory),
    # The size of this screen's window; the owner of the terminal may be another by now.
    "terminal/resized": _last(lambda terminal, _: (terminal.cols, terminal.rows)),
    "terminal/titleChanged": _last(lambda terminal, _: terminal.title),
    # Upserts by an id; an annotation that another changed since is left to the user.
    "annotations/set": _last(reading.annotation, lambda action: action.annotation.id),
    "annotations/updated": _last(reading.annotation, reading.annotation_target),
    "annotations/entrySet": _last(
        reading.annotation_entry, lambda action: (action.annotation_id, action.entry.id)
    ),
    # --- sets: an element is in or out, and doing it twice is doing it once
    # An element that is gone cannot come back by this.
    "annotations/removed": Rule(_while_it_changes),
    "annotations/entryRemoved": Rule(_while_it_changes),
    "chat/workingDirectorySet": Rule(_while_it_changes),
    "chat/workingDirectoryRemoved": Rule(_while_it_changes),
    "session/workingDirectorySet": Rule(_while_it_changes),
    "session/workingDirectoryRemoved": Rule(_while_it_changes),
    # This client's own entry, which only the host takes away: it takes part again.
    "session/activeClientSet": Rule(
        _while_it_changes, lambda action: action.active_client.client_id
    ),
    "session/activeClientRemoved": Rule(_while_it_changes),
    "automation/removed": Rule(_while_it_changes),
    # --- requests: the host acts on them and the state does not show whether it did
    "session/mcpServerStartRequested": _never(_REQUEST),
    "session/mcpServerStopRequested": _never(_REQUEST),
    "session/mcpServerBackgroundRequested": _never(_REQUEST),
    "automation/createRequested": _never("the automation may exist by now"),
    "automation/updateRequested": _never(_REQUEST),
    "automationRun/cancelRequested": _never(_REQUEST),
    # --- terminals: keys must not be typed twice, nor into what is shown by now
    # No identity, no trace in the state: never, not even when it was not sent.
    "terminal/input": _never("keys are never sent again"),
    # Would wipe output that came since.
    "terminal/cleared": _never("the terminal has shown more since"),
    # Somebody else may hold it by now.
    "terminal/claimed": _never("the terminal may have changed hands"),
}

_UNLISTED = _never("whether it is safe to send again is not known")


def rule_for(action: StateAction) -> Rule:
    """The row of an action; a type that has none is never sent again."""
    return RESEND.get(action_type(action), _UNLISTED)


def target_of(action: StateAction) -> Hashable | None:
    """What the action sets, for rules by which the last value counts; None for the others."""
    rule = rule_for(action)
    return None if rule.target is None else (action_type(action), rule.target(action))
