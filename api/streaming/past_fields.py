"""The field that a request asks for: the present one, or the states at a past time (`at`)."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Final

from api.dependencies import dependencies
from api.request import query_params
from api.streaming.fields import FollowedField, fields
from orchestrator.engine.pictures.field import Field
from orchestrator.engine.pictures.groups import FineGroups, Tree
from orchestrator.errors import InvalidRequest
from orchestrator.json_types import JsonObject
from orchestrator.operations.pictures.history import PastStates, oldest_event, past_states
from orchestrator.store.stacks.stacks import StackRow

MAX_PAST: Final = 8  # past times kept per field


@dataclass(frozen=True, slots=True)
class Shown:
    """States in the order of a field."""

    header: JsonObject
    states: bytes
    tag: str
    groups: tuple[FineGroups, Tree] | None = None


def current_field(followed: FollowedField) -> Field:
    """Return the field, which `follow` has read. The caller holds its lock."""
    assert followed.current is not None
    return followed.current


def header_of(followed: FollowedField, current: Field) -> JsonObject:
    """Return the header of responses."""
    return {**current.summary(), "cursor": followed.cursor}


def picture_of(stack: StackRow, *, with_groups: bool = False) -> Shown:
    """Return the field of a stack now, or at the time in the query.

    Raises:
        InvalidRequest: the time is invalid.
    """
    at = _time(query_params.text("at"))
    followed = fields().follow(stack)
    if at is None and not with_groups:
        with followed.lock:
            current = current_field(followed)
            return Shown(header_of(followed, current), bytes(current.states), current.tag)
    with followed.loading:  # groups and past states have the order of this field
        with followed.lock:
            current = current_field(followed)
            header, states, tag = header_of(followed, current), bytes(current.states), current.tag
        groups = followed.builder.groups() if with_groups else None
        if at is None:
            return Shown(header, states, tag, groups)
        past = _past(followed, stack, current, at)
    field = Field(current.ids, past.states, current.levels)
    header = {
        **header_of(followed, field),
        "at": _text(past.at),
        "history_from": _text(past.since),
        "omitted": past.omitted,
    }
    return Shown(header, bytes(past.states), field.tag, groups)


def history_from(stack: StackRow) -> str:
    """Return the time of the oldest event of a stack."""
    return _text(oldest_event(dependencies().database, stack.id) or stack.created_at)


def _past(followed: FollowedField, stack: StackRow, current: Field, at: dt.datetime) -> PastStates:
    database = dependencies().database
    since = oldest_event(database, stack.id) or stack.created_at
    at = min(max(at, since), dt.datetime.now(dt.UTC))
    key = current.order, at.isoformat()
    found = followed.past.get(key)
    if found is None:
        found = past_states(database, followed.builder, at, since)
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
