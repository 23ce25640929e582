"""Explanations of unfinished nodes: a keyword for programs and a sentence for people
(docs/internals/design.md invariant 9).

`explain` derives both from a row. The keywords: `being-planned`, `ending`, `waiting-for` other nodes,
`queued` for a worker, `being-checked` by a worker, `waiting-until` the next check, `waiting-to-be-told` (a
signal), `waiting-for-its-stack` (a child stack in progress), `retrying` after a failure, `refused` by its
provider for the moment, `unreachable` (its provider gives no answer), `held` by another visit to the same
resource, `holding` up a newer traversal, `paused-at-hook`, `failed`, `given-up` after another resource
failed, and `nothing`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.engine.check.refusals import (
    BY_KIND,
    QUOTA_SECONDS,
    UNREACHABLE,
    Refusal,
    limit_seconds,
)
from orchestrator.engine.states import ACTS, accepted, suggested_operations
from orchestrator.store.planning.bulk_writer import CLEANUP_PLAN_LABEL
from orchestrator.store.stacks.blockers import Blocker, StackState, Unfinished
from orchestrator.store.stacks.stacks import StackRow

MAX_SHOWN_NAMES: Final = 3  # names in a sentence
IDLE: Final = "no action in progress"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason why a node is not finished: keyword, sentence, and since when."""

    word: str
    text: str
    since: dt.datetime | None


def explain(node: Unfinished, stack: StackRow, retry_limit: int) -> Explanation:
    """Return the reason why a node is not finished."""
    if node.kind == "plan":
        return _planned(node, stack)
    if node.kind == "finish":
        text = "all nodes are done; the result is being recorded"
        if node.state == "waiting" and node.last_error:
            text = f"the resources are deleted; the rest of the delete is pending. {node.last_error}"
        return Explanation("ending", text, node.waiting_since)
    if node.state in {"blocked", "queued"} and node.op is None and given_up(stack):
        return Explanation("given-up", "it will not start: another resource failed", None)
    match node.state:
        case "blocked":
            return Explanation("waiting-for", _waits_for(node), stack.action_started_at)
        case "queued":
            return _queued(node, stack)
        case "checking":
            return _checked(node, stack)
        case "paused":
            hook = node.hook or "a hook"
            return Explanation(
                "paused-at-hook", f"paused until the hook {hook} is cleared", node.waiting_since
            )
        case "failed":
            reason = node.last_error or node.status_reason or "no reason was given"
            return Explanation("failed", f"failed: {reason}", None)
        case "ready":
            return Explanation("nothing", "not waiting: it is in the desired state", None)
        case _:
            return _waiting(node, stack, retry_limit)


def given_up(stack: StackRow) -> bool:
    """Whether operations that have not started will never start."""
    return stack.winding_down or not stack.in_progress


def _planned(node: Unfinished, stack: StackRow) -> Explanation:
    since = stack.action_started_at
    if node.name == CLEANUP_PLAN_LABEL:
        text = "all else is done; the delete of unreferenced resources is being planned"
        return Explanation("being-planned", f"{text}{_enqueued(node)}{_lost(node)}", node.waiting_since)
    if node.state == "checking":
        return Explanation("being-planned", f"being planned since {time(since)}{_lost(node)}", since)
    return Explanation("being-planned", f"waits for a worker to plan it{_enqueued(node)}{_lost(node)}", since)


def _queued(node: Unfinished, stack: StackRow) -> Explanation:
    since = node.enqueued_at or node.waiting_since or stack.action_started_at
    return Explanation("queued", f"waits for a worker{_enqueued(node)}{_lost(node)}", since)


def _checked(node: Unfinished, stack: StackRow) -> Explanation:
    until = f", with a lease until {time(node.leased_until)}" if node.leased_until else ""
    text = f"{_operation(node)}: a worker is processing it{until}{_lost(node)}"
    if node.traversal != stack.traversal:
        return Explanation(
            "holding",
            f"{text}. It belongs to an earlier traversal, which the current traversal waits for",
            _since(node),
        )
    return Explanation("being-checked", text, _since(node))


def _waiting(node: Unfinished, stack: StackRow, retry_limit: int) -> Explanation:
    if node.traversal != stack.traversal:
        next_ = f"waits for {_child(node)}" if node.child_name else f"checked again {_at(node)}"
        text = f"{_operation(node)}, started for an earlier template, and {next_}"
        return Explanation("holding", text, _since(node))
    if node.held_until is not None:
        holder = "another visit"
        if node.other_traversal is not None and node.other_traversal != stack.traversal:
            holder = "a visit of an earlier traversal"
        text = f"{holder} holds the resource until {time(node.held_until)} at the latest; retried {_at(node)}"
        return Explanation("held", text, node.waiting_since)
    if node.refusal or node.unreachable_tries:
        return _refused(node, BY_KIND.get(node.refusal or "", UNREACHABLE))
    if node.retry_count and node.last_error:
        tries = f"try {node.retry_count + 1} of {retry_limit + 1} {_at(node)}"
        return Explanation(
            "retrying", f"{tries}; the last attempt failed: {node.last_error}", node.waiting_since
        )
    if node.child_name:
        text = f"{_operation(node)}: waits for {_child(node)}"
        return Explanation("waiting-for-its-stack", text, _since(node))
    if node.until_told:
        return Explanation(
            "waiting-to-be-told", f"{_operation(node)}: waits for a signal{_noted(node)}", _since(node)
        )
    text = f"{_operation(node)}: checked again {_at(node)}{_noted(node)}{_lost(node)}"
    return Explanation("waiting-until", text, _since(node))


def _refused(node: Unfinished, refusal: Refusal) -> Explanation:
    """Tell a temporary refusal: its text, since when the operation waits, and until when at the latest."""
    limit, since = limit_seconds(refusal, QUOTA_SECONDS), node.refused_since or node.waiting_since
    until = "the timeout of the stack"
    if limit is not None and since is not None:
        until = f"{time(since + dt.timedelta(seconds=limit))} at the latest"
    attempts = f"{_count(node.unreachable_tries, 'attempt')} " if refusal.is_outage else ""
    told = f"{attempts}{refusal.text}"
    word = "unreachable" if refusal is UNREACHABLE else "refused"
    return Explanation(word, f"{told}: {node.last_error}. Next attempt {_at(node)}, until {until}", since)


def _child(node: Unfinished) -> str:
    return f"its stack {node.child_name} ({node.child_state})"


def _waits_for(node: Unfinished) -> str:
    failed = [blocker.name for blocker in node.waits_for if blocker.state == "failed"]
    if failed:
        return f"waits for {_listed(node.waits_for, node.waits_for_count)}; {', '.join(failed)} failed"
    if not node.waits_for:
        count = node.waits_for_count
        verb = "is removed" if node.kind == "cleanup" else "is ready"
        return f"waits until {_count(count, 'other')} {verb if count == 1 else verb.replace('is', 'are', 1)}"
    return f"waits for {_listed(node.waits_for, node.waits_for_count)}"


def _listed(blockers: Sequence[Blocker], count: int) -> str:
    names = [_named(blocker) for blocker in blockers[:MAX_SHOWN_NAMES]]
    omitted = count - len(names)
    return ", ".join(names) + (f" and {omitted} more" if omitted > 0 else "")


def _named(blocker: Blocker) -> str:
    return f"{blocker.name} (only until it exists)" if blocker.early else blocker.name


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _operation(node: Unfinished) -> str:
    if node.op == "DISCARD":
        return "the failed resource is being deleted"
    began = f" since {time(node.op_started_at)}" if node.op_started_at else ""
    verb = node.op or ("DELETE" if node.kind == "cleanup" else node.action)
    return f"{verb} is in progress{began}" if node.op else "it is being checked"


def _noted(node: Unfinished) -> str:
    reason = node.status_reason
    return f" ({reason})" if reason and reason != "state changed" else ""


def _lost(node: Unfinished) -> str:
    hung = f"; {_count(node.hangs, 'worker')} hung while processing it" if node.hangs else ""
    if not node.lost_leases:
        return hung
    return f"{hung}; {_count(node.lost_leases, 'worker')} stopped while processing it"


def _enqueued(node: Unfinished) -> str:
    return f", enqueued at {time(node.enqueued_at)}" if node.enqueued_at else ", not enqueued yet"


def _at(node: Unfinished) -> str:
    return f"at {time(node.due_at)}" if node.due_at else "on a signal"


def _since(node: Unfinished) -> dt.datetime | None:
    return node.op_started_at or node.waiting_since or node.enqueued_at


def time(moment: dt.datetime | None) -> str:
    """Return a time in the API's format."""
    return moment.astimezone(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ") if moment else "a time unknown"


@dataclass(frozen=True, slots=True)
class Summary:
    """The state of a stack as a sentence and a keyword: working, planning, winding-down, at-rest, failed or
    gone.
    """

    word: str
    text: str
    since: dt.datetime | None
    timeout_at: dt.datetime | None
    accepts: tuple[str, ...]


def summarize(stack: StackRow, state: StackState, default_timeout_seconds: int) -> Summary:
    """Return the state of a stack and its current activity."""
    accepts = accepted(stack.action, stack.status)
    if stack.in_progress:
        seconds = stack.timeout_mins * 60 if stack.timeout_mins else default_timeout_seconds
        ends = stack.action_started_at + dt.timedelta(seconds=seconds)
        keyword, text = _at_work(stack, state)
        text += _queue(stack)
        if stack.action in ACTS:
            text += _revision(stack, state)
        return Summary(keyword, text, stack.action_started_at, ends, accepts)
    since = stack.deleted_at or state.rests_since or stack.action_started_at
    if stack.deleted_at is not None:
        return Summary("gone", f"{IDLE}: it was deleted at {time(since)}", since, None, accepts)
    if stack.status == "COMPLETE":
        text = f"{IDLE}: {stack.state} since {time(since)}{_revision(stack, state)}{_queue(stack)}"
        return Summary("at-rest", text, since, None, accepts)
    running = f"; {_operations(state.running)}" if state.running else ""
    causes = f" because of {_count(state.cause_count, 'failure')}" if state.cause_count else ""
    text = f"{IDLE}: {stack.state} since {time(since)}{causes}{running}{_revision(stack, state)}. "
    text += f"{_resumption(stack)}{_suggested_actions(stack)}{_queue(stack)}"
    return Summary("failed", text, since, None, accepts)


def _resumption(stack: StackRow) -> str:
    if stack.resume_at is None:
        return ""
    return f"It continues when its services answer, at {time(stack.resume_at)} at the earliest. "


def _revision(stack: StackRow, state: StackState) -> str:
    """Return the statement that the stack has not reached its desired revision, if so."""
    if stack.reached or state.desired_number is None or stack.action == "DELETE":
        return ""
    last = "" if state.good_number is None else f": the last was {state.good_number}"
    return f". It has not reached revision {state.desired_number}{last}"


def _queue(stack: StackRow) -> str:
    """Return the statement that an action is queued, if so."""
    if stack.queued_action is None:
        return ""
    return f". {stack.queued_action} is queued since {time(stack.queued_at)}, until the stack is COMPLETE"


def _at_work(stack: StackRow, state: StackState) -> tuple[str, str]:
    since = f"since {time(stack.action_started_at)}"
    if stack.winding_down:
        return "winding-down", f"{stack.action} is winding down after a failure: {_operations(state.running)}"
    if state.planning_since is not None:
        return "planning", f"{stack.action} is being planned {since}"
    return "working", f"{stack.action} is in progress {since}"


def _operations(number: int) -> str:
    return f"{_count(number, 'operation')} still running"


def _suggested_actions(stack: StackRow) -> str:
    text = suggested_operations(stack.action)
    return f"{text[0].upper()}{text[1:]}"
