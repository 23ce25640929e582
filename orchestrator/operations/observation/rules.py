"""Policies, pauses and accepted differences: create, list, show, end, and what applies to a resource.

`engine/observation/policies.py` decides (operations/adr/0018).
"""

from __future__ import annotations

import datetime as dt
import re
import uuid as uuid_
from collections.abc import Iterator
from typing import Final

from orchestrator.bodies.model import fault
from orchestrator.bodies.observation_policies import ObservationPolicy, ObservationPolicyCreate, PolicyChecks
from orchestrator.engine.observation import policies
from orchestrator.engine.observation.policies import PROPERTIES, RULE_KINDS
from orchestrator.errors import (
    Diagnostic,
    InvalidRequest,
    InvalidTemplate,
    LimitExceeded,
    NotFound,
    ResourceNotFound,
)
from orchestrator.json_types import JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.observation import rounds
from orchestrator.operations.request_body import read_object
from orchestrator.store.observation import repairs, rules
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow

MAX_RULES: Final = 1_000  # of a project, in force


class RuleNotFound(NotFound):
    """The project has no such rule."""

    def __init__(self, id_: str) -> None:
        """Name it."""
        super().__init__("Observation policy", id_)


def create(context: OperationContext, body: Body) -> JsonObject:
    """Create a rule, in place of one of the same kind for the same object; return it.

    Raises:
        InvalidTemplate: the request is not valid; every fault is listed.
        NotFound: the project has no such stack.
        LimitExceeded: it has the maximum number of rules.
    """
    checks = PolicyChecks(context.types, rounds.MIN_SECONDS, dt.datetime.now(dt.UTC))
    requested = ObservationPolicyCreate.read(read_object(body.read()), checks)
    stack = _stack(context, requested.stack)
    if faults := list(_unknown_objects(context, requested, stack)):
        raise InvalidTemplate(faults)
    uuid = uuid_.uuid4()
    values = {
        "uuid": uuid,
        "project_id": context.caller.project_id,
        "kind": requested.kind,
        "stack_id": stack.id if stack is not None else None,
        "type": requested.type or "",
        "resource": requested.resource or "",
        "name": requested.name or "",
        "mode": requested.mode,
        "interval_seconds": requested.interval,
        "path": requested.path or "",
        "reason": requested.reason or "",
        "starts_at": requested.starts_at,
        "ends_at": requested.until,
        "repeats": requested.repeats or "",
        "created_by": context.caller.user,
        "most": MAX_RULES,
    }
    with context.database.borrow(hot=False) as db:
        with db.transaction():  # a decision never outlives the rules that it was made by
            if not rules.add(db, values):
                raise LimitExceeded(
                    f"You have reached the maximum observation policies per tenant, {MAX_RULES}."
                )
            repairs.reconsider(db, context.caller.project_id)
        row = rules.get(db, context.caller.project_id, uuid)
    assert row is not None
    return ObservationPolicy.shown(row)


def listed(
    context: OperationContext,
    *,
    kind: str | None = None,
    stack: str | None = None,
    history: bool = False,
    marker: str | None = None,
    limit: int | None = None,
) -> list[JsonObject]:
    """Return the project's rules, the oldest first; with `history` also those that have ended.

    Raises:
        InvalidRequest: the kind is unknown.
        NotFound: the project has no such stack.
    """
    if kind is not None and kind not in RULE_KINDS:
        raise InvalidRequest(f"Unknown kind '{kind}', must be one of: {', '.join(RULE_KINDS)}.")
    found = _stack(context, stack)
    with context.database.borrow(hot=False) as db:
        rows = rules.listed(
            db, context.caller.project_id, kind=kind, stack_id=found.id if found else None, history=history,
            marker=marker, limit=limit,
        )  # fmt: skip
    return [ObservationPolicy.shown(row) for row in rows]


def show(context: OperationContext, id_: str) -> JsonObject:
    """Return a rule, also one that has ended.

    Raises:
        RuleNotFound: it does not exist.
    """
    with context.database.borrow(hot=False) as db:
        row = rules.get(db, context.caller.project_id, _uuid(id_))
    if row is None:
        raise RuleNotFound(id_)
    return ObservationPolicy.shown(row)


def end(context: OperationContext, id_: str) -> None:
    """End a rule; it stays in the history.

    Raises:
        RuleNotFound: it does not exist, or has ended.
    """
    with context.database.borrow(hot=False) as db, db.transaction():
        if not rules.end(db, context.caller.project_id, _uuid(id_), context.caller.user):
            raise RuleNotFound(id_)
        repairs.reconsider(db, context.caller.project_id)


def effective(context: OperationContext, stack_name: str, path: str | None) -> JsonObject:
    """Return the policy and the pause that apply to a stack, or to a resource in it.

    Raises:
        NotFound: the stack or the resource does not exist.
    """
    stack = _stack(context, stack_name)
    assert stack is not None
    with context.database.borrow(hot=False) as db:
        owner = rules.at_path(db, stack.id, path) if path else None
        if path and owner is None:
            raise ResourceNotFound(path, stack.name)
        [place] = rules.places(db, [(stack.id, path or "", owner.type if owner else "")])
        rows = rules.in_force(db, context.caller.project_id, [id_ for id_, _ in place.stacks])
    by_id, found = {row.id: row for row in rows}, [row.rule for row in rows]
    policy = policies.effective(found, place)
    pause = policies.paused(found, place, dt.datetime.now(dt.UTC))
    return {
        "mode": policy.mode,
        "policy": ObservationPolicy.shown(by_id[policy.rule.id]) if policy.rule else None,
        "pause": ObservationPolicy.shown(by_id[pause.id]) if pause else None,
    }


def _unknown_objects(
    context: OperationContext, requested: ObservationPolicyCreate, stack: StackRow | None
) -> Iterator[Diagnostic]:
    """Yield the faults that only the rows of the stack show."""
    path, pattern = requested.resource, requested.path
    if stack is None:
        return
    with context.database.borrow(hot=False) as db:
        if path is not None and rules.at_path(db, stack.id, path) is None:
            yield fault("unknown-resource", f"The stack {stack.name} has no resource {path}", "resource")
        if pattern is not None and not policies.matches_everything(pattern):
            resource, _, property_ = pattern.partition(PROPERTIES)
            owners = rules.matching(db, stack.id, _posix_regex(resource))
            if not any(_has_property(context, owner.type, property_) for owner in owners):
                what = "property of its resources" if owners else "resource of the stack"
                yield fault("matches-nothing", f"{pattern!r} matches no {what}", "path")


def _has_property(context: OperationContext, type_name: str, pattern: str) -> bool:
    type_ = context.types.get(type_name)
    if type_ is None or type_.any_properties:
        return True
    first = pattern.partition(".")[0]
    return any(policies.matches(first, name) for name in type_.properties)


def _posix_regex(pattern: str) -> str:
    """Return a pattern of an acceptance as a regular expression of PostgreSQL."""
    literal = re.sub(
        r"[^A-Za-z0-9_*?]", lambda found: "\\" + found[0] if found[0].isascii() else found[0], pattern
    )
    return f"^{re.sub(r'[*]+', '.*', literal).replace('?', '.')}$"


def _stack(context: OperationContext, name: str | None) -> StackRow | None:
    if name is None:
        return None
    stack = stacks.find(context.database, context.caller.project_id, name)
    if stack is None or stack.deleted_at is not None or stack.project_id != context.caller.project_id:
        raise NotFound("Stack", name)
    return stack


def _uuid(id_: str) -> uuid_.UUID:
    try:
        return uuid_.UUID(id_)
    except ValueError:
        raise RuleNotFound(id_) from None
