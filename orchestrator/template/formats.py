"""The template formats (docs/internals/hot-language.md §1).

A format describes a single value of a version key: its functions, keywords and rules. Formats are entry
points of the group `orchestrator.template_formats`, each a sequence of `Format`; other packages can add
formats. An unusable entry point is skipped and logged, and named in the error for an unknown format; the
remaining formats are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from orchestrator.errors import Diagnostic, InvalidTemplate, Misconfigured
from orchestrator.json_types import JsonMapping
from orchestrator.logs import logger
from orchestrator.template import versions
from orchestrator.template.functions import Function
from orchestrator.template.functions.member import MEMBER
from orchestrator.template.parameters import ParameterSchema

log = logger()

GROUP: Final = "orchestrator.template_formats"
OWN_MODULES: Final = "orchestrator."  # how the modules of our own formats begin

ReadParameter = Callable[[str, Any, str], ParameterSchema]  # (name, declaration, HOT version)


@dataclass(frozen=True, slots=True)
class Keywords:
    """A format's names of sections and keys; an empty name means that the format lacks the section or key."""

    description: str = "description"
    parameter_groups: str = "parameter_groups"
    parameters: str = "parameters"
    conditions: str = "conditions"
    mappings: str = ""
    resources: str = "resources"
    outputs: str = "outputs"
    value: str = "value"  # of an output
    type: str = "type"  # from here on, of a resource
    properties: str = "properties"
    metadata: str = "metadata"
    depends_on: str = "depends_on"
    deletion_policy: str = "deletion_policy"
    update_policy: str = "update_policy"
    condition: str = "condition"
    external_id: str = "external_id"

    def sections(self) -> tuple[str, ...]:
        """Return the names of the sections, except the version."""
        return tuple(
            keyword
            for keyword in (
                self.description,
                self.parameter_groups,
                self.parameters,
                self.conditions,
                self.mappings,
                self.resources,
                self.outputs,
            )
            if keyword
        )

    def resource_keys(self) -> dict[str, str]:
        """Return the meaning of each key of a resource, by keyword."""
        meanings = (
            "type",
            "properties",
            "metadata",
            "depends_on",
            "deletion_policy",
            "update_policy",
            "description",
            "condition",
            "external_id",
        )
        return {getattr(self, meaning): meaning for meaning in meanings if getattr(self, meaning)}


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    """A template format.

    `functions` are all names with a meaning in the format, including rejected functions;
    `condition_functions` can be called in conditions. `rules` is the HOT version whose rules apply to
    sections and parameters.
    """

    key: str
    version: str
    functions: Mapping[str, Function]
    condition_functions: Mapping[str, Function] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    keywords: Keywords = Keywords()
    rules: str = versions.LATEST
    read_parameter: ReadParameter = ParameterSchema.from_hot
    pseudo: tuple[str, ...] = ("OS::stack_id", "OS::stack_name", "OS::project_id")
    reserved: tuple[str, ...] = ("OS::stack_id", "OS::stack_name", "OS::project_id", "OS::region")
    ignores_unknown_keys: bool = False  # unknown keys of resources are overlooked
    callable: Mapping[str, Function] = field(init=False)  # the functions it does not refuse

    def __post_init__(self) -> None:
        """Compute the callable functions."""
        ready = {name: f for name, f in self.functions.items() if f.state == "ready"}
        object.__setattr__(self, "callable", ready)

    @property
    def name(self) -> str:
        """Return the name stored in the database: for HOT only the version."""
        return self.version if self.key == versions.HOT_KEY else f"{self.key}.{self.version}"

    @property
    def family(self) -> str:
        """Return the family of the keywords: `hot` or `cfn`."""
        return "hot" if self.keywords.resources == Keywords().resources else "cfn"


# The internal format of a group's child. It is not among the installed formats, so requests cannot use it
# (`template/group_template.py`).
GROUP_FORMAT: Final = Format("orchestrator_members", "1", {MEMBER.name: MEMBER})


@dataclass(frozen=True, slots=True)
class Installed:
    """The installed formats by name, and the unusable entry points with the reasons."""

    formats: Mapping[str, Format]
    broken: Mapping[str, str] = field(default_factory=dict)

    def find(self, key: str, value: str) -> Format | None:
        """Return the format with this version key, and this version or alias."""
        for form in self.formats.values():
            if form.key == key and (form.version == value or value in form.aliases):
                return form
        return None

    def named(self, name: str) -> Format:
        """Return the format with this name.

        Raises:
            Misconfigured: the package of the format is not installed any more, or unusable.
        """
        format_ = self.formats.get(name)
        if format_ is None:
            broken = "".join(f"; {point} cannot be used: {why}" for point, why in self.broken.items())
            raise Misconfigured(f"the template format {name} is not installed any more{broken}")
        return format_

    def of(self, document: JsonMapping, *, from_text: bool = False) -> Format:
        """Return the format a template is written in; see `format_of`."""
        keys = list(dict.fromkeys(form.key for form in self.formats.values()))
        present = [key for key in document if key in keys and isinstance(document[key], str)]
        if len(present) > 1:
            raise _refused(
                "ambiguous-version",
                f"The template version is invalid: Ambiguous versions ({', '.join(present)})",
            )
        if not present:
            hint = self._missing() if any("version" in str(key).lower() for key in document) else ""
            if from_text and not any(key in document for key in keys):
                message, heat_type = "Template format version not found.", "HTTPBadRequest"
                raise _refused("no-version", message, hint=hint, heat_type=heat_type)
            message = "The template version is invalid: Template version was not provided"
            raise _refused("no-version", message, hint=hint)
        key, value = present[0], document[present[0]]
        format_ = self.find(key, value)
        if format_ is None:
            fitting = [form for form in self.formats.values() if form.key == key]
            words = ", ".join(
                sorted(version for form in fitting for version in (form.version, *form.aliases))
            )
            should = "should be one of" if "," in words else "should be"
            message = f'The template version is invalid: "{key}: {value}". "{key}" {should}: {words}'
            raise _refused("unknown-version", message, path=key, hint=self._missing())
        return format_

    def _missing(self) -> str:
        """Return a hint that names unusable entry points; the reason is only in the log."""
        if not self.broken:
            return ""
        return f"installed but not usable, the server's log contains the reason: {', '.join(self.broken)}"


def collect(points: Iterable[EntryPoint]) -> Installed:
    """Return the formats of entry points.

    An entry point that cannot be loaded, is not a sequence of formats, or uses a name already in use is
    skipped as a whole. Built-in formats are loaded first, so that plugins cannot replace them.
    """
    formats: dict[str, Format] = {}
    broken: dict[str, str] = {}
    for point in sorted(points, key=lambda point: (not point.value.startswith(OWN_MODULES), point.name)):
        try:
            formats |= _load_formats(point, formats)
        except (Exception, SystemExit) as error:  # importing a plugin may raise any exception
            why = broken[point.name] = f"{type(error).__name__}: {error}"
            log.error("template_format_skipped", format=point.name, source=point.value, reason=why)
    return Installed(formats, broken)


def _load_formats(point: EntryPoint, formats: Mapping[str, Format]) -> dict[str, Format]:
    brought: dict[str, Format] = {}
    for made in point.load():
        if not isinstance(made, Format):
            raise TypeError(f"{made!r} is not a Format")
        if made.name in formats or made.name in brought:
            raise ValueError(f"a format {made.name} already exists")
        brought[made.name] = made
    return brought


@cache
def installed() -> Installed:
    """Return the installed formats; loaded once."""
    return collect(entry_points(group=GROUP))


def all_formats() -> Mapping[str, Format]:
    """Return every format that can be used, by name."""
    return installed().formats


def format_named(name: str) -> Format:
    """Return the format with this name, or that of groups; see `Installed.named`."""
    return GROUP_FORMAT if name == GROUP_FORMAT.name else installed().named(name)


def find_format(key: str, value: str) -> Format | None:
    """Return the format with this version key, and this version or alias."""
    return installed().find(key, value)


def format_of(document: JsonMapping, *, from_text: bool = False) -> Format:
    """Return the format of a template.

    Raises:
        InvalidTemplate: no version, several versions or an unknown version. Heat's message for a missing
            version differs between a text (`from_text`) and an object.
    """
    return installed().of(document, from_text=from_text)


def _refused(
    code: str, message: str, *, path: str = "", hint: str = "", heat_type: str = "InvalidTemplateVersion"
) -> InvalidTemplate:
    return InvalidTemplate([Diagnostic(code, message, path, hint=hint, heat_type=heat_type)])
