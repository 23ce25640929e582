"""Types of objects with extra specs that may be private: flavors of nova, volume types of cinder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final
from urllib.parse import quote

from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.resources.base import Context, Created, Fault, Observation, Value
from orchestrator.resources.openstack.collection_type import CollectionType, Field
from orchestrator.resources.openstack.settings import as_texts, same_texts

SPECS: Final = "extra_specs"


def _same_projects(before: Iterable[str] | None, after: Iterable[str] | None) -> bool:
    return set(before or ()) == set(after or ())


SPECS_FIELD: Final = Field(equal=same_texts, sent=False, reported=False)
PROJECTS_FIELD: Final = Field(equal=_same_projects, sent=False, reported=False)


@dataclass(frozen=True, slots=True)
class Access:
    """The requests for the projects that may use an object that is not public."""

    path: str
    list_key: str
    project_key: str  # in the list
    action_key: str  # in an action
    allow: str
    deny: str


class SpecsType(CollectionType):
    """An object with extra specs, and with projects that may use it unless it is public. Both are set in a
    step after the create or update of the object.
    """

    noun: ClassVar[str]
    specs_path: ClassVar[str]
    access: ClassVar[Access]
    public_key: ClassVar[str]  # the attribute that tells whether an object is public
    specs_property: ClassVar[str]
    projects_property: ClassVar[str]

    def validate(self, properties: Mapping[str, Value], stack_timeout_seconds: float) -> Sequence[Fault]:
        """A public object has no list of projects."""
        if properties.get("is_public") and properties.get(self.projects_property):
            name = self.projects_property
            message = f'Can not specify property "{name}" if the {self.noun} is public.'
            return (Fault(message, alone=True),)
        return ()

    def observation(self, ctx: Context, actual: JsonObject) -> Observation:
        """Compare the extra specs and the projects as well."""
        seen = super().observation(ctx, actual)
        if ctx.action == "DELETE":
            return seen
        specs, public = self._specs(ctx, actual), actual.get(self.public_key, True)
        values: JsonObject = {self.specs_property: specs}
        wanted = set(ctx.properties.get(self.projects_property) or ())
        if not public:
            values[self.projects_property] = sorted(self._projects(ctx, actual["id"]))
        differs = specs != as_texts(ctx.properties.get(self.specs_property)) or (
            not public and wanted != set(values[self.projects_property])
        )
        step = "configure" if differs and ctx.action in ("CREATE", "UPDATE") else ""
        shown = {"is_public": public, SPECS: specs}
        attributes = {name: value for name, value in shown.items() if name in self.attributes}
        properties = {**(seen.properties or {}), **values}
        return replace(seen, ready=not step, step=step, attributes=attributes, properties=properties)

    def advance(
        self, ctx: Context, physical_id: str, props: Mapping[str, Value], step: str
    ) -> Created | None:
        """Set the extra specs and the projects, as far as they differ."""
        api, path = self.api(ctx), f"{self.collection.of(physical_id)}/{self.specs_path}"
        desired, actual = as_texts(props.get(self.specs_property)), self._specs(ctx, {"id": physical_id})
        for key in actual.keys() - desired.keys():
            api.delete(f"{path}/{quote(key, safe='')}")
        if changed := {key: value for key, value in desired.items() if actual.get(key) != value}:
            api.post(path, {SPECS: changed})
        if not props.get("is_public", True):
            allowed = self._projects(ctx, physical_id)
            projects = set(props.get(self.projects_property) or ())
            for action, changing in (
                (self.access.allow, projects - allowed),
                (self.access.deny, allowed - projects),
            ):
                for project in sorted(changing):
                    argument = {self.access.action_key: project}
                    api.request_action(self.collection, physical_id, action, argument)
        return None

    def _specs(self, ctx: Context, actual: JsonMapping) -> JsonObject:
        """Return the extra specs; some services show them with the object."""
        if SPECS in actual:
            return dict(actual[SPECS] or {})
        path = f"{self.collection.of(actual['id'])}/{self.specs_path}"
        return dict(self.api(ctx).get(path).get(SPECS) or {})

    def _projects(self, ctx: Context, object_id: str) -> set[str]:
        """Return the projects that may use an object."""
        answer = self.api(ctx).find_one(f"{self.collection.of(object_id)}/{self.access.path}") or {}
        return {item[self.access.project_key] for item in answer.get(self.access.list_key) or ()}
