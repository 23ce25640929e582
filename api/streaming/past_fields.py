"""The field that a request asks for: the present one, its first picture (`draft`), or the states at a past
time (`at`).
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from api.dependencies import dependencies
from api.request import query_params
from api.streaming.fields import fields
from api.streaming.followed_field import FollowedField
from orchestrator.engine.pictures.field import Field
from orchestrator.engine.pictures.groups import FineGroups, Tree
from orchestrator.errors import InvalidRequest
from orchestrator.json_types import JsonObject
from orchestrator.operations.pictures.draft import FieldDraft
from orchestrator.operations.pictures.history import PastStates, oldest_event, past_states
from orchestrator.store.stacks.stacks import StackRow

MAX_PAST: Final = 8  # past times kept per field
PRESENT: Final = dt.timedelta(seconds=1)  # as late as the states of a watched field
RECENT: Final = dt.timedelta(seconds=30)  # the first picture of a later time is that of the present


@dataclass(frozen=True, slots=True)
class Shown:
    """States in the order of a field."""

    header: JsonObject
    states: bytes
    tag: str


@dataclass(frozen=True, slots=True)
class ShownGroups:
    """Groups of a field, and the number of resources by group and byte."""

    fine: FineGroups
    tree: Tree
    numbers: Mapping[tuple[int, int], int]
    is_draft: bool = False
    newer_in_seconds: float | None = None


def current_field(followed: FollowedField) -> Field:
    """Return the field, which `follow` has read. The caller holds its lock."""
    assert followed.current is not None
    return followed.current


def header_of(stack: StackRow, followed: FollowedField, current: Field) -> JsonObject:
    """Return the header of responses."""
    return _header(stack, current, followed.cursor)


def _header(stack: StackRow, shown: Field, cursor: str) -> JsonObject:
    return {**shown.summary(), "cursor": cursor, "stack_status": stack.state}


def picture_of(stack: StackRow) -> Shown:
    """Return the field of a stack now, or at the time in the query.

    Raises:
        InvalidRequest: the query is invalid.
    """
    at = _time(query_params.text("at"))
    if (draft := _draft(stack, at)) is not None:
        shown = draft.field()
        header = {**_header(stack, shown, ""), "draft": True, **({} if at is None else {"at": _text(at)})}
        return _shown(header, shown)
    followed = fields().follow(stack)
    if at is None:
        with followed.lock:
            current = current_field(followed)
            return _shown(header_of(stack, followed, current), current)
    with followed.loading:  # past states have the order of this field
        with followed.lock:
            current = current_field(followed)
        past = _past(followed, stack, current, at)
    shown = Field(current.ids, past.states, current.levels, current.order)
    header = {
        **header_of(stack, followed, shown),
        "at": _text(past.at),
        "history_from": _text(past.since),
        "omitted": past.omitted,
    }
    return _shown(header, shown)


def _shown(header: JsonObject, field: Field) -> Shown:
    """Return a picture; its tag changes with everything that it shows."""
    return Shown(header, bytes(field.states), f"{field.tag}-{header['stack_status']}")


def groups_of(stack: StackRow) -> ShownGroups:
    """Return the groups of a field now, or at the time in the query.

    Raises:
        InvalidRequest: the query is invalid.
    """
    at = _time(query_params.text("at"))
    if (draft := _draft(stack, at, with_groups=True)) is not None:
        first = draft.groups()
        return ShownGroups(first.fine, first.tree, first.numbers, is_draft=True)
    followed = fields().follow(stack)
    present, fine, tree = fields().with_groups(followed)
    if at is None:
        with followed.lock:
            numbers = present.group_counts(fine.of)
        return ShownGroups(fine, tree, numbers, newer_in_seconds=followed.newer_in_seconds)
    with followed.loading:
        with followed.lock:
            current = current_field(followed)
            fine, tree = followed.groups or (fine, tree)  # of the same read
        past = _past(followed, stack, current, at)
        with followed.lock:
            is_present = past.states == current.states
            numbers = current.group_counts(fine.of) if is_present else {}
    if not is_present:
        numbers = Counter(zip(fine.of, past.states, strict=True))
    return ShownGroups(fine, tree, numbers)


def _draft(stack: StackRow, at: dt.datetime | None, *, with_groups: bool = False) -> FieldDraft | None:
    """Return the first picture of the present if it was requested and the field is not read yet."""
    is_past = at is not None and dt.datetime.now(dt.UTC) - at > RECENT
    if not query_params.boolean("draft") or is_past:
        return None
    return fields().draft(stack, with_groups=with_groups)


def history_from(stack: StackRow) -> str:
    """Return the time of the oldest event of a stack."""
    return _text(oldest_event(dependencies().database, stack.id) or stack.created_at)


def _past(followed: FollowedField, stack: StackRow, current: Field, at: dt.datetime) -> PastStates:
    database = dependencies().database
    since = oldest_event(database, stack.id) or stack.created_at
    now = dt.datetime.now(dt.UTC)
    at = min(max(at, since), now)
    key = current.order, at.isoformat()
    found = followed.past.get(key)
    if found is None and now - at < PRESENT:
        found = PastStates(at, since, bytearray(current.states), 0)
    if found is None:
        found = past_states(database, followed.builder, at, since)
    if key not in followed.past:
        while len(followed.past) >= MAX_PAST:
            followed.past.pop(next(iter(followed.past)))
        followed.past[key] = found
    return found


def _time(text: str | None) -> dt.datetime | None:
    if text is None:
        return None
    try:
        found = dt.datetime.fromisoformat(text.replace("Z", "+00:00").replace(" ", "+"))
    except ValueError:
        raise InvalidRequest(f"Invalid time '{text}' for 'at': use YYYY-MM-DDTHH:MM:SSZ.") from None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)


def _text(time: dt.datetime) -> str:
    return time.astimezone(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
