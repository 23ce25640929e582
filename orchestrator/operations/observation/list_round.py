"""A round over the lists of a service: objects are compared with resources by their ids, page by page."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from orchestrator import metrics
from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.engine.observation.drift import IN_SYNC, Drift
from orchestrator.engine.observation.judgement import Evidence, Unlisted, Unobserved, unobserved
from orchestrator.engine.observation.rounds import estimated_loss, is_mass_loss
from orchestrator.errors import ProviderError
from orchestrator.logs import logger
from orchestrator.operations.keystone.delegated_credentials import cloud_of_stack
from orchestrator.operations.observation.findings import (
    Findings,
    Lease,
    RoundResult,
    context_in_list,
    evidence_of,
    recorded_values,
)
from orchestrator.operations.reconcile.worker_context import WorkerContext
from orchestrator.operations.resource_context.state import load_state
from orchestrator.resources.base import Observation, ResourceType
from orchestrator.resources.verbs.contexts import list_context
from orchestrator.store.connections.damaged_rows import DAMAGED
from orchestrator.store.observation import groups, verdicts, watched
from orchestrator.store.observation.groups import Group
from orchestrator.store.observation.verdicts import Db
from orchestrator.store.observation.watched import VersionedVisit, Watched

log = logger()
T = TypeVar("T")

PAGE: Final = 1_000  # objects compared between two renewals of the lease
READ: Final = 200  # rows read completely at a time
MAX_LOOK_UPS: Final = 50  # of missing objects, per round
LOOK_UP_SECONDS: Final = 20.0
UNREACHABLE_IN_A_ROW: Final = 3  # after which no further object is looked up
MAX_CREDENTIALS: Final = 5  # tried in a round
CREDENTIAL_RETRY_SECONDS: Final = 300.0  # until a refused credential is tried again
REFUSALS: Final = frozenset({"AuthorizationFailure", "Unauthorized", "Forbidden"})  # of a credential


class Listed(NamedTuple):
    """A resource, and its object in a list."""

    item: Watched
    value: Any
    digest: int


class ListRound:
    """A round over the lists of a group."""

    def __init__(
        self, engine: WorkerContext, db: Db, group: Group, types: Mapping[str, ResourceType]
    ) -> None:
        """Read the resources, before any list is requested. `types`: of the group, with lists."""
        self.engine, self.db, self.group, self.types = engine, db, group, types
        self.findings, self.lease = Findings(db, group), Lease(db, group)
        self.expected: dict[str, dict[str, tuple[Watched, ...]]] = defaultdict(dict)
        self.objects = self.calls = self.gone = 0  # gone: objects lost since the last round
        for item in watched.scan(db, group.project_id, list(types)):
            self.objects += 1
            by_id = self.expected[types[item.type_name].lists]
            by_id[item.physical_id] = (*by_id.get(item.physical_id, ()), item)

    def run(self) -> RoundResult:
        """Carry the round out.

        Raises:
            Superseded: the lease is lost.
            ProviderError: a list could not be read to its end.
        """
        credential_id, missing = self._read_lists() if self.objects else (self.group.credential_id, [])
        lost, left = self._look_up(missing)
        self.findings.write()
        verdicts.end_void(self.db, self.group)
        lost += self.gone
        if not is_mass_loss(lost, self.objects):
            lost = 0
        elif not self.group.lossy:
            metrics.count_loss(self.group.service)
            log.error("objects_lost", service=self.group.service, project=self.group.project_id, count=lost)
        restored = not is_mass_loss(self.findings.missing + left, self.objects)
        news = bool(self.findings.news or left or self.group.failing)
        return RoundResult(self.objects, self.calls, news, credential_id, lost, restored)

    # Lists

    def _read_lists(self) -> tuple[int | None, list[Watched]]:
        """Read the lists with the first credential that is accepted; return its root stack, and the resources
        without a listed object.
        """
        if self.engine.settings.auth != "keystone":
            return None, self._missing(None)
        project, last = self.group.project_id, self.group.credential_id
        refusal = "no stack of the project has a credential"
        for root_id in groups.credentials(self.db, project, last, CREDENTIAL_RETRY_SECONDS, MAX_CREDENTIALS):
            try:
                missing = self._missing(self._cloud(root_id))
            except ProviderError as error:
                if error.kind not in REFUSALS:
                    raise
                refusal = str(error)
                groups.record_fault(self.db, root_id, refusal)
            else:
                groups.clear_fault(self.db, root_id)
                return root_id, missing
        raise ProviderError(refusal, "AuthorizationFailure")

    def _missing(self, cloud: Cloud | None) -> list[Watched]:
        missing: list[Watched] = []
        for name, expected in self.expected.items():
            seen = self._compare(name, expected, cloud)
            missing += [item for id_, items in expected.items() if id_ not in seen for item in items]
        return missing

    def _compare(
        self, name: str, expected: Mapping[str, tuple[Watched, ...]], cloud: Cloud | None
    ) -> set[str]:
        """Compare the objects of a list with the resources; return the ids of those found."""
        type_ = next(type_ for type_ in self.types.values() if type_.lists == name)
        ctx = list_context(self.group.project_id, cloud)
        seen: set[str] = set()
        calls = self.calls
        for page in batches(type_.list_objects(ctx), PAGE):
            self.calls += 1
            found = [
                Listed(item, value, hash(orjson.dumps(value)))
                for id_, value in page
                for item in expected.get(id_, ())
            ]
            seen.update(listed.item.physical_id for listed in found)
            changed = [listed for listed in found if not self._is_unchanged(listed)]
            for batch in batches(changed, READ):
                self._observe(batch, cloud)
            self.findings.write()
            self.lease.renew()
        self.calls = max(self.calls, calls + 1)
        return seen

    def _is_unchanged(self, listed: Listed) -> bool:
        item = listed.item
        known = self.engine.unchanged.contains(item.id, item.version, listed.digest)
        return known and item.id not in self.findings.known

    def _observe(self, batch: Sequence[Listed], cloud: Cloud | None) -> None:
        visits = {found.visit.resource.id: found for found in self._visits([one.item for one in batch])}
        for item, value, digest in batch:
            found = visits.get(item.id)
            if found is None or found.version != item.version:  # changed since: the next round observes it
                continue
            try:
                _, after = self._judge(found, item, cloud, {item.physical_id: value})
            except DAMAGED as error:
                self.findings.judge_damaged(item, error)
                continue
            self.gone += after.state == "MISSING" and self.findings.before(item).state != "MISSING"
            if after == IN_SYNC and item.id not in self.findings.with_accepted:
                self.engine.unchanged.add(item.id, item.version, digest)

    def _judge(
        self,
        found: VersionedVisit,
        item: Watched,
        cloud: Cloud | None,
        listed: Mapping[str, Any],
    ) -> tuple[Evidence, Drift]:
        """Observe a resource; return the evidence, and what it proves."""
        if reason := self.engine.quarantine.reason("observation", item.id):
            self.findings.add_unobserved([item], reason)
            return Unlisted(), unobserved(self.findings.before(item), reason)
        type_, visit = self.types[item.type_name], found.visit
        with self.engine.quarantine.guarding("observation", item.id):
            state = load_state(visit, self.engine.cipher)
            ctx = context_in_list(type_, visit, state, cloud, listed)
            evidence = evidence_of(lambda: type_.observe(ctx, item.physical_id))
            values = recorded_values(type_, found, state, ctx)
            return evidence, self.findings.judge(item, visit, values, evidence)

    def _visits(self, items: Sequence[Watched]) -> Sequence[VersionedVisit]:
        return watched.visits(self.db, [item.id for item in items])

    # Objects that are missing in the lists

    def _look_up(self, missing: Sequence[Watched]) -> tuple[int, int]:
        """Look missing objects up by their ids. Return how many seem to be lost since the last round, and how
        many are left for the next round. Of these, the same share seems to be lost as of the others: a list
        that was cut off lacks objects that exist.
        """
        new = [item for item in missing if self._is_due(item)]
        new.sort(key=lambda item: bool(self.findings.before(item).unknown))
        until, gone, silent = time.monotonic() + LOOK_UP_SECONDS, 0, 0
        for number, item in enumerate(new):
            if number >= MAX_LOOK_UPS or time.monotonic() > until:
                left = len(new) - number
                return gone + estimated_loss(gone, number, left), left
            evidence_reason, is_gone = self._look_up_one(item)
            gone += is_gone
            silent = silent + 1 if evidence_reason else 0
            if silent >= UNREACHABLE_IN_A_ROW:
                self.findings.add_unobserved(new[number + 1 :], evidence_reason)
                break
        return gone, 0

    def _is_due(self, item: Watched) -> bool:
        before = self.findings.before(item)
        if before.unknown or not before.confirmed:  # the pauses are for proven results
            return True
        return self.engine.look_ups.is_due(item.id, item.version, missing=before.state == "MISSING")

    def _look_up_one(self, item: Watched) -> tuple[str, bool]:
        """Return why the object could not be observed, and whether it does not exist."""
        self.calls += 1
        self.lease.renew()
        found = next(iter(self._visits([item])), None)
        if found is None or found.version != item.version:
            return "", False
        try:
            evidence, after = self._judge(found, item, self._cloud(item.root_id), {})
        except DAMAGED as error:
            self.findings.judge_damaged(item, error)
            return "", False
        if isinstance(evidence, Unobserved):
            return evidence.reason, False
        if not isinstance(evidence, Observation):
            return "", False
        if after.confirmed:
            self.engine.look_ups.note(item.id, item.version, missing=after.state == "MISSING")
        return "", not evidence.exists and self.findings.before(item).state != "MISSING"

    def _cloud(self, root_id: int) -> Cloud | None:
        engine = self.engine
        return cloud_of_stack(engine.database.borrow, engine.cipher, engine.settings, root_id)


def batches(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of `size`."""
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
