"""Policies, pauses and accepted differences: create, list, show, end, and what applies to a resource.

`engine/observation/policies.py` decides (operations/adr/0018).
"""

from __future__ import annotations

import datetime as dt
import re
import uuid as uuid_
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestrator.engine.observation import policies
from orchestrator.engine.observation.policies import MODES, PERIODS, PROPERTIES, REPETITIONS, RULE_KINDS
from orchestrator.errors import (
    Diagnostic,
    InvalidRequest,
    InvalidTemplate,
    LimitExceeded,
    NotFound,
    ResourceNotFound,
    did_you_mean,
)
from orchestrator.json_types import JsonObject
from orchestrator.operations.context import Body, OperationContext
from orchestrator.operations.request_body import read_object
from orchestrator.schema.constraint_checks import parse_time
from orchestrator.store.observation import repairs, rules
from orchestrator.store.observation.rules import RuleRow
from orchestrator.store.stacks import stacks
from orchestrator.store.stacks.stacks import StackRow

MAX_RULES: Final = 1_000  # of a project, in force
NAME: Final = r"[A-Za-z0-9_.-]{1,64}"  # of a policy
MAX_TEXT: Final = 1_000  # characters
LONGEST_INTERVAL: Final = 86_400.0  # seconds
KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "policy": ("kind", "name", "stack", "type", "resource", "mode", "interval", "reason"),
    "pause": ("kind", "stack", "type", "resource", "reason", "starts_at", "until", "repeats"),
    "accept": ("kind", "stack", "path", "reason", "until", "all"),
}


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
    requested = read_object(body.read())
    now = dt.datetime.now(dt.UTC)
    _raise(list(_faults(context, requested, now)))
    stack = _stack(context, requested.get("stack"))
    _raise(list(_unknown_objects(context, requested, stack)))
    uuid = uuid_.uuid4()
    values = {
        "uuid": uuid,
        "project_id": context.caller.project_id,
        "kind": requested["kind"],
        "stack_id": stack.id if stack is not None else None,
        "type": requested.get("type") or "",
        "resource": requested.get("resource") or "",
        "name": requested.get("name") or "",
        "mode": requested.get("mode"),
        "interval_seconds": requested.get("interval"),
        "path": requested.get("path") or "",
        "reason": requested.get("reason") or "",
        "starts_at": _time(requested.get("starts_at")),
        "ends_at": _time(requested.get("until")),
        "repeats": requested.get("repeats") or "",
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
    return rule_body(row)


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
    return [rule_body(row) for row in rows]


def show(context: OperationContext, id_: str) -> JsonObject:
    """Return a rule, also one that has ended.

    Raises:
        RuleNotFound: it does not exist.
    """
    with context.database.borrow(hot=False) as db:
        row = rules.get(db, context.caller.project_id, _uuid(id_))
    if row is None:
        raise RuleNotFound(id_)
    return rule_body(row)


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
        "policy": rule_body(by_id[policy.rule.id]) if policy.rule else None,
        "pause": rule_body(by_id[pause.id]) if pause else None,
    }


def rule_body(row: RuleRow) -> JsonObject:
    """Return a rule as shown to its project."""
    return {
        "id": str(row.uuid),
        "kind": row.kind,
        "stack_id": str(row.stack_uuid) if row.stack_uuid is not None else None,
        "stack_name": row.stack_name,
        "type": row.type or None,
        "resource": row.resource or None,
        "name": row.name or None,
        "mode": row.mode,
        "interval": row.interval_seconds,
        "path": row.path or None,
        "reason": row.reason or None,
        "starts_at": _shown(row.starts_at),
        "until": _shown(row.ends_at),
        "repeats": row.repeats or None,
        "created_by": row.created_by or None,
        "creation_time": _shown(row.created_at),
        "ended_at": _shown(row.ended_at),
        "ended_by": row.ended_by or None,
    }


def _faults(context: OperationContext, requested: JsonObject, now: dt.datetime) -> Iterator[Diagnostic]:
    kind = requested.get("kind")
    if not isinstance(kind, str) or kind not in KEYS:
        yield _fault("invalid-kind", f"kind must be one of: {', '.join(RULE_KINDS)}", "kind")
        return
    for key in sorted(requested.keys() - set(KEYS[kind])):
        text = f"Unknown key {key!r} for the kind {kind}, must be one of: {', '.join(KEYS[kind])}"
        yield _fault("unknown-key", text, key)
    for key in (
        "name",
        "stack",
        "type",
        "resource",
        "path",
        "reason",
        "starts_at",
        "until",
        "repeats",
        "mode",
    ):
        value = requested.get(key)
        if value is not None and (not isinstance(value, str) or not value or len(value) > MAX_TEXT):
            yield _fault("invalid-text", f"{key} must be a text of 1 to {MAX_TEXT} characters", key)
            return
    if kind != "policy" and not (requested.get("reason") or "").strip():
        yield _fault("missing-reason", "a reason is required", "reason")
    yield from _OF_KIND[kind](requested, now)
    if (interval := requested.get("interval")) is not None:
        least = context.settings.observation_min_interval_seconds
        number = isinstance(interval, int | float) and not isinstance(interval, bool)
        if not number or not least <= interval <= LONGEST_INTERVAL:
            text = f"interval must be a number of seconds from {least:g} to {LONGEST_INTERVAL:g}"
            yield _fault("invalid-interval", text, "interval")
    if requested.get("resource") is not None and requested.get("stack") is None:
        yield _fault("missing-stack", "a resource needs the stack that it belongs to", "stack")
    if requested.get("resource") is not None and requested.get("type") is not None:
        text = "name a resource or a type, not both: a policy has a single object"
        yield _fault("contradiction", text, "type")
    if requested.get("name") is not None:
        if not re.fullmatch(NAME, requested["name"]):
            yield _fault("invalid-name", "name must have 1 to 64 letters, digits, dots, - and _", "name")
        if any(requested.get(key) is not None for key in ("stack", "type", "resource")):
            text = "a policy with a name has no other object: environments refer to it"
            yield _fault("contradiction", text, "name")
    type_ = requested.get("type")
    if type_ is not None and type_ not in context.types:
        hint = did_you_mean(type_, context.types)
        yield _fault("unknown-type", f"The resource type ({type_}) is unknown", "type", hint)


def _policy_faults(requested: JsonObject, _now: dt.datetime) -> Iterator[Diagnostic]:
    if requested.get("mode") not in MODES:
        yield _fault("invalid-mode", f"mode must be one of: {', '.join(MODES)}", "mode")


def _pause_faults(requested: JsonObject, now: dt.datetime) -> Iterator[Diagnostic]:
    repeats = requested.get("repeats") or ""
    if repeats not in REPETITIONS:
        yield _fault("invalid-repetition", "repeats must be one of: daily, weekly", "repeats")
        return
    if requested.get("until") is None:
        yield _fault("missing-end", "until is required: every pause ends", "until")
        return
    yield from _time_faults(requested, "starts_at", None)
    faults = list(_time_faults(requested, "until", None if repeats else now))
    yield from faults
    try:
        start, end = _time(requested.get("starts_at")) or now, _time(requested["until"])
    except ValueError:
        return
    assert end is not None
    if faults:
        return
    if end <= start:
        yield _fault("invalid-time", "until must be after starts_at", "until")
    elif repeats and end - start >= PERIODS[repeats]:
        yield _fault("invalid-time", f"a {repeats} window must be shorter than its period", "until")


def _accept_faults(requested: JsonObject, now: dt.datetime) -> Iterator[Diagnostic]:
    yield from _time_faults(requested, "until", now)
    path, everything = requested.get("path"), requested.get("all")
    if everything not in (None, True, False):
        yield _fault("invalid-boolean", "all must be a boolean", "all")
    if requested.get("stack") is None:
        yield _fault("missing-stack", "stack is required: paths begin in a stack", "stack")
    if path is None:
        yield _fault("missing-path", "path is required, such as web.properties.metadata.*", "path")
    elif policies.matches_everything(path):
        if everything is not True:
            yield _fault(
                "accepts-everything", f"{path!r} accepts every difference; this requires all", "path"
            )
    elif PROPERTIES not in path:
        text = f"{path!r} must name properties of a resource, such as web.properties.metadata.*"
        yield _fault("invalid-path", text, "path")


_OF_KIND: Final = {"policy": _policy_faults, "pause": _pause_faults, "accept": _accept_faults}


def _time_faults(requested: JsonObject, key: str, after: dt.datetime | None) -> Iterator[Diagnostic]:
    try:
        value = _time(requested.get(key))
    except ValueError:
        yield _fault("invalid-time", f"{key} must be a time such as 2026-01-31T12:00:00Z", key)
        return
    if value is not None and after is not None and value <= after:
        yield _fault("past-time", f"{key} lies in the past", key)


def _unknown_objects(
    context: OperationContext, requested: JsonObject, stack: StackRow | None
) -> Iterator[Diagnostic]:
    """Yield the faults that only the rows of the stack show."""
    path, pattern = requested.get("resource"), requested.get("path")
    if stack is None:
        return
    with context.database.borrow(hot=False) as db:
        if path is not None and rules.at_path(db, stack.id, path) is None:
            yield _fault("unknown-resource", f"The stack {stack.name} has no resource {path}", "resource")
        if pattern is not None and not policies.matches_everything(pattern):
            resource, _, property_ = pattern.partition(PROPERTIES)
            owners = rules.matching(db, stack.id, _posix_regex(resource))
            if not any(_has_property(context, owner.type, property_) for owner in owners):
                what = "property of its resources" if owners else "resource of the stack"
                yield _fault("matches-nothing", f"{pattern!r} matches no {what}", "path")


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


def _raise(faults: list[Diagnostic]) -> None:
    if faults:
        raise InvalidTemplate(faults)


def _fault(code: str, text: str, path: str, hint: str = "") -> Diagnostic:
    return Diagnostic(code, text, path, hint=hint, heat_type="HTTPBadRequest")


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


def _time(value: Any) -> dt.datetime | None:
    if value is None:
        return None
    found = parse_time(str(value))
    return found if found.tzinfo is not None else found.replace(tzinfo=dt.UTC)


def _shown(value: dt.datetime | None) -> str | None:
    return value.astimezone(dt.UTC).isoformat()[:19] + "Z" if value is not None else None
