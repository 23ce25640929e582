"""The desired contents of a stack in a tree according to its template, and its recorded contents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from tests.scenarios.world import World


class Level:
    """A stack of a tree: its desired contents, and its rows."""

    def __init__(
        self,
        world: World,
        stack_id: int,
        resources: Mapping[str, Any],
        files: Mapping[str, str],
        parameters: Mapping[str, Any],
        place: str = "",
    ) -> None:
        self.world, self.resources, self.files = world, resources, files
        self.parameters, self.place = parameters, place
        [self.stack] = world.rows("SELECT *, uuid::text FROM stack WHERE id = :id", id=stack_id)
        query = """SELECT id, name, coalesce(runs_as, type) AS type, physical_id, action, status, attributes,
            deposed FROM resource WHERE stack_id = :id ORDER BY name, id"""
        self.rows = world.rows(query, id=stack_id)
        self.template: Mapping[str, Any] = {}
        self._children: dict[str, Level] = {}

    def child(self, name: str) -> Level:
        """Return a child of this stack."""
        if name not in self._children:
            [row] = [row for row in self.rows if row.name == name]
            query = "SELECT id FROM stack WHERE parent_resource_id = :id AND deleted_at IS NULL"
            [stack] = self.world.rows(query, id=row.id)
            snippet = self.resources[name]
            template = orjson.loads(self.files[snippet["type"]])
            supplied = {key: self.resolved(value) for key, value in snippet["properties"].items()}
            place = f"{self.place}{name}."
            child = Level(self.world, stack.id, template["resources"], self.files, supplied, place)
            child.template = template
            self._children[name] = child
        return self._children[name]

    def outputs(self) -> dict[str, Any]:
        """Return the values of its outputs."""
        outputs = self.template["outputs"]
        return {name: self.resolved(output["value"]) for name, output in outputs.items()}

    def resolved(self, value: Any) -> Any:
        """Return the resolved form of a value of its template."""
        match value:
            case {"get_resource": name}:
                return next(row.physical_id for row in self.rows if row.name == name)
            case {"get_param": name}:
                return self.parameters[name]
            case {"get_attr": [name, attribute]} if self.resources[name]["type"] in self.files:
                return self.child(name).outputs()[attribute]
            case {"get_attr": [name, attribute]}:
                return self.resolved(self.resources[name]["properties"][attribute])
            case {"list_join": [glue, parts]}:
                return glue.join(self.resolved(part) for part in parts)
            case list():
                return [self.resolved(item) for item in value]
        return value
