"""A resource of Neutron and its cloud, for unit tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from orchestrator.clients.openstack.object_collections import Collection
from orchestrator.resources.base import Context, Created, Observation, ResourceType
from orchestrator.template.definition import ResourceDefinition
from orchestrator.testing.scripted_cloud import ScriptedCloud

NAME = "stack-a-000000000000"
TOKEN = "11111111-2222-3333-4444-555555555555-1"
MARK = f"(stack-orchestrator:{TOKEN})"


class Operation:
    """An operation on a resource; its requests are answered by `script`."""

    root = ""  # of all paths

    def __init__(self, kind: type[ResourceType], action: str = "CREATE", /, **given: Any) -> None:
        self.type, self.script, self.shown = kind(), ScriptedCloud(), set[str]()
        self.ctx = Context(
            name="a", physical_name=NAME, token=TOKEN, action=action, cloud=self.script.cloud, project_id="p"
        )
        self.give(**given)

    def give(self, **given: Any) -> None:
        """Set the properties, as a template has them."""
        values, faults = self.type.read_properties(given)
        assert faults == []
        self.ctx = replace(self.ctx, properties=values)

    def has(self, collection: Collection, value: Mapping[str, Any], parent: str = "") -> None:
        """Answer a GET of an object."""
        path = self.root + collection.of(str(value["id"]), parent)
        self.shown.add(path)
        self.script.answers("GET", path, {collection.singular: dict(value)})

    def lists(self, collection: Collection, *values: Mapping[str, Any], parent: str = "") -> None:
        """Answer the lists of a collection."""
        answer = {collection.plural: [dict(value) for value in values]}
        self.script.answers("GET", self.root + collection.of(parent=parent) + r"\?.*", answer)

    def accepts(self, method: str, collection: Collection, id_: str = "x1", parent: str = "") -> None:
        """Accept a POST, PUT or DELETE of ids that match `id_`. A PUT follows a GET of the revision."""
        path = self.root + collection.of(parent=parent) + ("" if method == "POST" else f"/{id_}")
        answer = None if method == "DELETE" else {collection.singular: {"id": id_}}
        if method == "PUT" and path not in self.shown:
            self.script.answers("GET", path, answer)
        self.script.answers(method, path, answer, status=204 if method == "DELETE" else 200)

    def create(self) -> Created:
        """Call `create`."""
        return self.type.create(self.ctx, self.ctx.properties)

    def update(self, *changed: str, id_: str = "x1") -> Created:
        """Call `update`."""
        ctx = replace(self.ctx, action="UPDATE")
        return self.type.update(ctx, id_, ctx.properties, frozenset(changed))

    def observe(self, action: str = "", id_: str = "x1") -> Observation:
        """Call `observe`."""
        return self.type.observe(replace(self.ctx, action=action or self.ctx.action), id_)

    def advance(self, step: str, id_: str = "x1") -> None:
        """Call `advance`."""
        self.type.advance(self.ctx, id_, self.ctx.properties, step)

    def delete(self, id_: str = "x1") -> None:
        """Call `delete`."""
        self.type.delete(replace(self.ctx, action="DELETE"), id_)

    def bodies(self, method: str) -> list[Any]:
        """Return the bodies of the requests so far."""
        return [request.body for request in self.script.sent(method)]

    def faults(self) -> list[str]:
        """Return the messages of `validate`."""
        return [fault.message for fault in self.type.validate(self.ctx.properties, 3600.0)]


def definitions(**resources: tuple[str, dict[str, Any]]) -> dict[str, ResourceDefinition]:
    """Return definitions of resources: a type without `OS::Neutron::`, and properties."""
    return {
        name: ResourceDefinition(
            name,
            f"OS::Neutron::{kind}",
            {"properties": props},
            frozenset(_references(props)),
            {},
            frozenset(),
        )
        for name, (kind, props) in resources.items()
    }


def implied(kind: type[ResourceType], name: str, resources: Mapping[str, ResourceDefinition]) -> set[str]:
    """Return the implicit requirements of a resource."""
    return set(kind().implicit_requires(resources[name], resources))


def of(name: str) -> dict[str, str]:
    """Return a reference to a resource."""
    return {"get_resource": name}


def _references(value: Any) -> set[str]:
    if isinstance(value, dict):
        if set(value) == {"get_resource"}:
            return {value["get_resource"]}
        return set().union(*map(_references, value.values()))
    return set().union(*map(_references, value)) if isinstance(value, list) else set()
