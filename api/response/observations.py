"""Verdicts in responses."""

from __future__ import annotations

from typing import Final

from api.dependencies import dependencies
from api.response.serialization import time
from orchestrator.bodies.observations import Deviation
from orchestrator.json_types import JsonObject
from orchestrator.store.observation import reads
from orchestrator.store.stacks.resources import ResourceRow
from orchestrator.store.stacks.stacks import StackRow

NOT_YET: Final = "it was not observed yet"


def observation_of(row: ResourceRow, stack: StackRow) -> JsonObject | None:
    """Return the verdict on a resource, None if its type has no provider."""
    database = dependencies().database
    groups = reads.services(database, stack.project_id, row.effective_type)
    if row.physical_id is None or not groups:
        return None
    [group, *_] = groups
    observed_at = time(group.observed_at)
    refusal = reads.refusal_of(database, stack.root_id)
    if refusal is not None:
        return _verdict("UNKNOWN", refusal.reason, since=time(refusal.since), observed_at=observed_at)
    deviation = reads.deviation_of(database, row.id)
    if deviation is not None:
        body = Deviation.shown(deviation)
        shown = ("id", "verdict", "reason", "since", "observed_at", "differences")
        return {key: body[key] for key in shown}
    if group.failing_since is not None:
        since, reason = time(group.failing_since), group.failing_reason or ""
        return _verdict("UNKNOWN", reason, since=since, observed_at=observed_at)
    if group.observed_at is None:
        return _verdict("UNKNOWN", NOT_YET, since=time(row.created_at), observed_at=None)
    since_at = reads.in_sync_since(database, stack, row.id) or row.updated_at or row.created_at
    return _verdict("IN_SYNC", "", since=time(since_at), observed_at=observed_at)


class ListedVerdicts:
    """The verdicts on the resources of a list, read once for the list."""

    def __init__(self, stack: StackRow, *, tree: bool, detail: bool) -> None:
        """`tree`: resources of nested stacks are listed. `detail`: also resources in sync have a verdict."""
        database = dependencies().database
        self._deviating = reads.deviating(database, stack, tree=tree)
        self._detail = detail and len(self._deviating) < reads.MAX_DEVIATING
        self._services = reads.services(database, stack.project_id) if self._detail else []
        self._refusal = reads.refusal_of(database, stack.root_id) if self._detail else None

    def of(self, row: ResourceRow) -> JsonObject | None:
        """Return the verdict on a resource, None without one."""
        found = self._deviating.get(row.id)
        if found is not None:
            since, observed_at = time(found.since), time(found.observed_at)
            return _verdict(found.verdict, found.reason, since=since, observed_at=observed_at)
        group = next((group for group in self._services if row.effective_type in group.types), None)
        if group is None or row.physical_id is None:
            return None
        observed_at = time(group.observed_at)
        if self._refusal is not None:
            since, reason = time(self._refusal.since), self._refusal.reason
            return _verdict("UNKNOWN", reason, since=since, observed_at=observed_at)
        if group.failing_since is not None:
            since, reason = time(group.failing_since), group.failing_reason or ""
            return _verdict("UNKNOWN", reason, since=since, observed_at=observed_at)
        if group.observed_at is None:
            return _verdict("UNKNOWN", NOT_YET, since=time(row.created_at), observed_at=None)
        return _verdict("IN_SYNC", "", since=None, observed_at=observed_at)


def _verdict(verdict: str, reason: str, *, since: str | None, observed_at: str | None) -> JsonObject:
    return {"verdict": verdict, "reason": reason, "since": since, "observed_at": observed_at}
