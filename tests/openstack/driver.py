"""Resources on a cloud, operated like by the engine."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.cloud import OpenStack
from orchestrator.errors import ProviderBusy
from orchestrator.lookups.finder import CloudFinder
from orchestrator.resources.base import Context, Observation, ResourceType
from orchestrator.resources.registry import load_registry
from tests.patience import Patience

PATIENCE_SECONDS = 120.0  # of an operation on a loaded machine
MAX_SLEEP_SECONDS = 1.0
MAX_STEPS = 50


@dataclass
class Resource:
    """The row of a resource."""

    type: ResourceType
    given: dict[str, Any]
    ctx: Context
    physical_id: str = ""
    observation: Observation = field(default_factory=lambda: Observation(exists=False))
    started_at: float = 0.0

    def start(self, action: str, properties: Mapping[str, Any] | None = None) -> None:
        """Begin an operation."""
        self.started_at = time.monotonic()
        given = self.ctx.properties if properties is None else properties
        self.ctx = replace(self.ctx, action=action, properties=given, step="")

    @property
    def now(self) -> Context:
        """The context of a verb of the running operation."""
        return replace(self.ctx, elapsed_seconds=time.monotonic() - self.started_at)


@dataclass
class Driver:
    """Operates resources on a cloud, and deletes the remains of a test at the end."""

    cloud: Cloud
    prefix: str
    project_id: str = ""
    resources: dict[str, Resource] = field(default_factory=dict)

    @property
    def openstack(self) -> OpenStack:
        """The client layer, for preparations and assertions."""
        return OpenStack(self.cloud, 60.0)

    def name(self) -> str:
        """Return a new name."""
        return f"{self.prefix}-{uuid.uuid4().hex[:10]}"

    def context(self, action: str = "CREATE", **fields: Any) -> Context:
        """Return the context of a new resource."""
        values: dict[str, Any] = {"physical_name": self.name(), "token": f"{uuid.uuid4()}-1", **fields}
        return Context(
            name="a",
            action=action,
            cloud=self.cloud,
            project_id=self.project_id,
            deadline_seconds=60.0,
            **values,
        )

    def read(self, type_: ResourceType, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return properties as the verbs receive them, with ids in place of names."""
        finder = CloudFinder(self.cloud, self.project_id, deadline_seconds=60.0)
        values, faults = type_.read_properties(given, resolve=finder)
        assert faults == [], [fault.message for fault in faults]
        return values

    def prepare(self, type_: str | type[ResourceType], given: Mapping[str, Any] | None = None) -> Resource:
        """Return a resource that is not created yet."""
        kind = load_registry()[type_] if isinstance(type_, str) else type_()
        properties = self.read(kind, given or {})
        return Resource(kind, dict(given or {}), self.context(properties=properties))

    def create(self, type_: str | type[ResourceType], given: Mapping[str, Any] | None = None) -> str:
        """Create a resource, wait until it is ready, and return its physical id."""
        resource = self.prepare(type_, given)
        self.adopt(
            resource, self.request(lambda: resource.type.create(resource.ctx, resource.ctx.properties))
        )
        self.settle(resource)
        return resource.physical_id

    def adopt(self, resource: Resource, created: Any) -> None:
        """Store the result of a create."""
        resource.physical_id = created if isinstance(created, str) else created.physical_id
        if not isinstance(created, str):
            resource.ctx = replace(resource.ctx, data=dict(created.data))
        self.resources[resource.physical_id] = resource

    def update(self, physical_id: str, **changes: Any) -> str:
        """Change properties in place, None removes a property; return the physical id."""
        resource = self.resources[physical_id]
        given = {name: value for name, value in {**resource.given, **changes}.items() if value is not None}
        before, after = resource.ctx.properties, self.read(resource.type, given)
        changed = frozenset(n for n in {*before, *after} if before.get(n) != after.get(n))
        step = resource.type.change(before, after, changed)
        assert step == "update", f"{step} of {sorted(changed)}"
        resource.start("UPDATE", after)
        updated = self.request(
            lambda: resource.type.update(resource.now, resource.physical_id, after, changed)
        )
        resource.given = given
        del self.resources[physical_id]
        self.adopt(resource, updated)
        self.settle(resource)
        return resource.physical_id

    def delete(self, physical_id: str) -> None:
        """Delete a resource and wait until it is absent."""
        resource = self.resources.pop(physical_id)
        resource.start("DELETE")
        self.request(lambda: resource.type.delete(resource.now, physical_id))
        self.settle(resource)

    def observe(self, physical_id: str, action: str = "CHECK") -> Observation:
        """Observe a resource."""
        resource = self.resources[physical_id]
        ctx = replace(resource.ctx, action=action)
        return self.request(lambda: resource.type.observe(ctx, physical_id))

    def attributes(self, physical_id: str, *live: str) -> dict[str, Any]:
        """Return the recorded attributes, and these live attributes."""
        resource = self.resources[physical_id]
        values = dict(self.observe(physical_id).attributes)
        if live:
            values |= self.request(
                lambda: resource.type.read_attributes(resource.ctx, physical_id, frozenset(live))
            )
        return values

    def drift(self, physical_id: str) -> dict[str, Any]:
        """Return the properties whose actual values differ from the desired values."""
        resource = self.resources[physical_id]
        actual = self.observe(physical_id).properties or {}
        desired = resource.ctx.properties
        return {
            name: value
            for name, value in actual.items()
            if name in desired and not resource.type.equal(name, desired[name], value)
        }

    def find(self, physical_id: str) -> list[str]:
        """Return the ids that `find` returns for the token of a resource."""
        resource = self.resources[physical_id]
        ctx = replace(resource.ctx, action="CREATE")
        found = self.request(lambda: resource.type.find(ctx, ctx.token))
        return [found] if isinstance(found, str) else list(found or ())

    def settle(self, resource: Resource) -> None:
        """Observe, and carry out steps, until the operation is complete."""
        deleting, patience = resource.ctx.action == "DELETE", Patience(PATIENCE_SECONDS)
        for _ in range(MAX_STEPS):
            seen = self.request(lambda: resource.type.observe(resource.now, resource.physical_id))
            resource.observation = seen
            assert not seen.error, seen.error
            if not seen.exists or (seen.ready and not seen.step and not deleting):
                break
            if seen.step:
                self._advance(resource, seen.step)
                continue
            assert patience.left(), f"the operation does not end: {seen}"
            time.sleep(min(seen.retry_after or MAX_SLEEP_SECONDS, MAX_SLEEP_SECONDS))
        assert resource.observation.exists is not deleting, resource.observation

    def _advance(self, resource: Resource, step: str) -> None:
        resource.ctx = replace(resource.ctx, step=step)
        result = self.request(
            lambda: resource.type.advance(resource.now, resource.physical_id, resource.ctx.properties, step)
        )
        if result is not None:
            self.resources.pop(resource.physical_id, None)
            self.adopt(resource, result)

    def request(self, call: Callable[[], Any]) -> Any:
        """Call a verb; repeat it while the service is busy."""
        patience = Patience(PATIENCE_SECONDS)
        while True:
            try:
                return call()
            except ProviderBusy as error:
                if not patience.left():
                    raise
                time.sleep(min(error.retry_after or MAX_SLEEP_SECONDS, MAX_SLEEP_SECONDS))

    def clean_up(self) -> None:
        """Delete all resources, the latest first."""
        for physical_id in reversed(list(self.resources)):
            self.delete(physical_id)
