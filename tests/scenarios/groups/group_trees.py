"""Random nestings of groups, chains and templates, and the attributes that Heat defines for them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, Final

from tests.scenarios.trees import text
from tests.scenarios.world import World

LEAF: Final = "OS::Heat::TestResource"
GROUP: Final = "OS::Heat::ResourceGroup"
CHAIN: Final = "OS::Heat::ResourceChain"
SCALED: Final = "OS::Heat::AutoScalingGroup"
INSTANCES: Final = "OS::Heat::InstanceGroup"
KINDS: Final = (GROUP, CHAIN, SCALED, "template")
MAPS: Final = {GROUP: ("attributes",), CHAIN: ("attributes",), SCALED: ("outputs", "outputs_list")}
REFERENCES: Final = {GROUP: ("refs", "refs_map"), CHAIN: ("refs",), SCALED: ("refs", "refs_map")}

Form = list[Any]  # an attribute and the keys below it


@dataclass
class Made:
    """A template's resource as made by `Maker`: its snippet, and the sizes of its levels."""

    kind: str
    snippet: dict[str, Any]
    size: int = 1
    inner: Made | None = None


@dataclass
class Maker:
    """Makes nestings; `files` has the nested templates."""

    dice: random.Random
    value: str = "v"
    files: dict[str, str] = field(default_factory=dict)

    def made(self, kinds: tuple[str, ...], sizes: tuple[int, ...], place: str = "") -> Made:
        """Return the nesting of these kinds, the outermost first."""
        if not kinds:
            return Made(LEAF, {"type": LEAF, "properties": {"value": f"{self.value}{place}"}})
        kind, size, level = kinds[0], sizes[0], len(kinds)
        index = f"%i{level}%"
        inner = self.made(kinds[1:], sizes[1:], f"{place}-{index}" if kind == GROUP else place)
        snippet = inner.snippet
        if kind == GROUP:
            properties = {"count": size, "index_var": index, "resource_def": snippet}
        elif kind == SCALED:
            properties = {"min_size": size, "max_size": 9, "desired_capacity": size, "resource": snippet}
        elif kind == CHAIN:
            properties = {"resources": [snippet["type"]] * size}
            if "properties" in snippet:
                properties["resource_properties"] = snippet["properties"]
        else:
            return self.template(inner, level)
        return Made(kind, {"type": kind, "properties": properties}, size, inner)

    def template(self, inner: Made, level: int) -> Made:
        """Return a nested template with a resource `x`, whose attributes are outputs too."""
        url = f"file:///level{level}.yaml"
        form = self.form(inner)
        outputs = {"out": {"get_attr": ["x", *form]}}
        self.files[url] = text({"x": inner.snippet}, outputs)
        return Made("template", {"type": url}, 1, inner)

    def form(self, made: Made) -> Form:
        """Return an attribute that the resource has, with the keys below it."""
        inner = made.inner
        if inner is None:
            return ["output"]
        below = self.form(inner)
        if made.kind == "template":
            forms = [["out"], ["resource.x"], ["resource.x", *below], [f"resource.x.{below[0]}", *below[1:]]]
            return self.dice.choice(forms)
        member = f"resource.{self.dice.randrange(made.size)}"
        forms = [[member], [member, *below], [f"{member}.{below[0]}", *below[1:]]]
        forms += [[name, *below] for name in MAPS[made.kind]]
        forms += [[name] for name in REFERENCES[made.kind]]
        declared = (*MAPS[made.kind], *REFERENCES[made.kind])
        if made.kind != SCALED and below[0] not in declared and not below[0].startswith("resource."):
            forms.append(below)
        return self.dice.choice(forms)


@dataclass
class Recorded:
    """A resource as the database has it."""

    name: str
    type: str
    reference: Any
    value: Any
    members: dict[str, Recorded]
    outputs: dict[str, Any]  # unresolved


def recorded(world: World, stack_id: int) -> dict[str, Recorded]:
    """Return a stack's resources by name, the oldest first."""
    rows = world.rows(
        """SELECT r.id, r.name, r.type, coalesce(r.reference_id, r.physical_id) AS reference,
            r.attributes ->> 'output' AS value, c.id AS child,
            (SELECT convert_from(b.body, 'UTF8')::json -> 'outputs' FROM revision v
                JOIN content b ON b.hash = v.template_hash WHERE v.id = c.revision_id) AS outputs
        FROM resource r LEFT JOIN stack c ON c.parent_resource_id = r.id AND c.deleted_at IS NULL
        WHERE r.stack_id = :id AND NOT r.deposed AND r.action <> 'DELETE' ORDER BY r.created_at, r.id""",
        id=stack_id,
    )
    return {
        row.name: Recorded(
            row.name,
            row.type,
            row.reference,
            row.value,
            {} if row.child is None else recorded(world, row.child),
            row.outputs or {},
        )
        for row in rows
    }


def attribute(resource: Recorded, name: str, *keys: Any) -> Any:
    """Return an attribute by the definitions of Heat."""
    members = resource.members
    if resource.type != SCALED:
        members = dict(sorted(members.items(), key=lambda item: (len(item[0]), item[0])))
    if name.startswith("resource."):
        _, key, *rest = name.split(".", 2)
        member = list(members.values())[int(key)] if resource.type in (SCALED, INSTANCES) else members[key]
        path = [*rest, *keys]
        return attribute(member, *path) if path else member.reference
    if resource.type == LEAF:
        return resource.value
    if name in resource.outputs:
        target, *path = resource.outputs[name]["value"]["get_attr"]
        return attribute(members[target], *path)
    if name in MAPS[resource.type]:
        values = {key: attribute(member, *keys) for key, member in members.items()}
        return list(values.values()) if name == "outputs_list" else values
    if name == "refs":
        return [member.reference for member in members.values()]
    if name == "refs_map":
        return {key: member.reference for key, member in members.items()}
    return [attribute(member, name, *keys) for member in members.values()]
