"""The field that a request asks for: the present field, its first picture (`draft`), or the states at a past
time (`at`).
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from api.dependencies import dependencies
from api.request import query_params
from api.response.serialization import instant
from api.streaming.fields import fields
from api.streaming.followed_field import FollowedField
from orchestrator.engine.pictures.field import Field
from orchestrator.engine.pictures.groups import FineGroups, Tree
from orchestrator.errors import InvalidRequest
from orchestrator.json_types import JsonObject
from orchestrator.operations.pictures.field import Arrangement
from orchestrator.operations.pictures.history import PastField, oldest_event, past_field
from orchestrator.store.stacks.stacks import StackRow

PRESENT: Final = dt.timedelta(seconds=1)  # as late as the states of a watched field
RECENT: Final = dt.timedelta(seconds=30)  # the first picture of a later time shows the present


class Shown(NamedTuple):
    """States in the order of a field."""

    header: JsonObject
    states: bytes
    tag: str  # changes with everything that a picture shows


class ShownGroups(NamedTuple):
    """Groups of a field, and the number of resources by group and byte."""

    fine: FineGroups
    tree: Tree
    numbers: Mapping[tuple[int, int], int]
    is_draft: bool
    newer_in_seconds: float | None  # until new resources are shown; None if all are, and at a time


@dataclass(frozen=True, slots=True)
class Picture:
    """A field, and the time of its states."""

    stack: StackRow
    followed: FollowedField
    field: Field
    arrangement: Arrangement
    time: JsonObject  # members of the header, if the request has a time
    takes_draft: bool

    def shown(self) -> Shown:
        """Return header and states."""
        with self.followed.lock:
            header = header_of(self.stack, self.followed, self.field) | self.time
            states = bytes(self.field.states)
            return Shown(header, states, f"{self.field.tag}-{header['stack_status']}")

    def groups(self) -> ShownGroups:
        """Return the groups."""
        fine, tree, is_draft = self.arrangement.groups(dependencies().database, takes_draft=self.takes_draft)
        with self.followed.lock:
            numbers = self.field.group_counts(fine.of)
        newer_in = None if self.time or is_draft else self.followed.newer_in_seconds
        return ShownGroups(fine, tree, numbers, is_draft, newer_in)


def header_of(stack: StackRow, followed: FollowedField, shown: Field) -> JsonObject:
    """Return the header of responses. The caller holds the lock."""
    return {**shown.summary(), "cursor": followed.cursor, "stack_status": stack.state}


def picture_of(stack: StackRow) -> Picture:
    """Return the field of a stack now, or at the time in the query.

    Raises:
        InvalidRequest: the query is invalid.
    """
    at = _time(query_params.text("at"))
    is_past = at is not None and dt.datetime.now(dt.UTC) - at > RECENT
    takes_draft = query_params.boolean("draft") and not is_past
    followed = fields().follow(stack, takes_draft=takes_draft)
    with followed.lock:
        shown, arrangement = followed.read
    time: JsonObject = {}
    if at is not None and shown.is_draft:
        time = {"at": instant(at)}
    elif at is not None:
        past = _past(followed, shown, arrangement, at)
        time = {"at": instant(past.at), "history_from": instant(past.since), "omitted": past.omitted}
        shown = past.field
    return Picture(stack, followed, shown, arrangement, time, takes_draft)


def history_from(stack: StackRow) -> str:
    """Return the time of the oldest event of a stack."""
    return instant(oldest_event(dependencies().database, stack.id) or stack.created_at)


def _past(followed: FollowedField, current: Field, arrangement: Arrangement, at: dt.datetime) -> PastField:
    """Return a field at a time; the requests of a page for the same time receive the same states."""
    database, stack = dependencies().database, followed.stack
    since = oldest_event(database, stack.id) or stack.created_at
    now = dt.datetime.now(dt.UTC)
    at = min(max(at, since), now)

    def read() -> PastField:
        if now - at >= PRESENT:
            return past_field(database, arrangement, current, at, since)
        with followed.lock:
            return PastField(at, since, current.with_states(bytearray(current.states)))

    return followed.past.get((current.order, at), None, read)


def _time(text: str | None) -> dt.datetime | None:
    if text is None:
        return None
    try:
        found = dt.datetime.fromisoformat(text.replace("Z", "+00:00").replace(" ", "+"))
    except ValueError:
        raise InvalidRequest(f"Invalid time '{text}' for 'at': use YYYY-MM-DDTHH:MM:SSZ.") from None
    return found if found.tzinfo else found.replace(tzinfo=dt.UTC)
