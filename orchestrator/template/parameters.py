"""Parameters: the declarations of a template, and the values of a stack (docs/internals/hot-language.md
§4).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.json_types import JsonMapping
from orchestrator.schema.constraints import (
    BOOLEANS,
    AllowedValues,
    Constraint,
    Custom,
    constraint_from_hot,
    misplaced,
)
from orchestrator.schema.type_names import as_written
from orchestrator.template import versions
from orchestrator.template.diagnostics import Hints
from orchestrator.template.function_view import FACADE, ParentResourceProxy
from orchestrator.template.json_text import MAX_DEPTH, number, read_json, too_deep
from orchestrator.template.secret_values import MASK as MASK  # noqa: PLC0414 - imported from here

TYPES: Final = ("string", "number", "comma_delimited_list", "json", "boolean")
# Names of other languages -> the type of HOT.
TYPE_ALIASES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("int", "integer", "float", "double", "num"), "number"),
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("bool",), "boolean"),
    **dict.fromkeys(("list", "array"), "comma_delimited_list"),
    **dict.fromkeys(("map", "dict", "object"), "json"),
}
KEYS: Final = frozenset(
    {"type", "label", "description", "default", "hidden", "constraints", "immutable", "tags", "schema"}
)

_ABSENT: Final = object()
Report = Callable[..., None]  # (code, message, path, hint)


@dataclass(frozen=True, slots=True)
class ParameterSchema:
    """A declared parameter. `default` is None if it has none."""

    name: str
    type: str
    label: str = ""
    description: str = ""
    default: Any = None
    hidden: bool = False
    constraints: tuple[Constraint, ...] = ()
    immutable: bool = False
    tags: tuple[str, ...] = ()

    @classmethod
    def from_hot(cls, name: str, body: object, version: str) -> ParameterSchema:
        """Read a declaration.

        Raises:
            InvalidTemplate: with every fault of it; paths start at the declaration.
        """
        faults: list[Diagnostic] = []

        def fault(code: str, message: str, path: str = "", hint: str = "") -> None:
            faults.append(Diagnostic(code, message, path, hint=hint, heat_type="InvalidSchemaError"))

        if not isinstance(body, dict):
            fault("parameter-not-a-map", f"Invalid parameter ({name}), expected a mapping")
            raise InvalidTemplate(faults)
        for key, hint in _unknown_keys(body, version):
            fault("unknown-key", f"Invalid key '{key}' for parameter ({name})", key, hint)
        type_name: Any = body.get("type")
        if "type" not in body:
            fault("missing-type", f"Missing parameter type for parameter: {name}")
        elif type_name not in TYPES:
            fault("unknown-type", f"Invalid type ({type_name})", "type", _type_hint(str(type_name)))
        tags = body.get("tags", [])
        if not isinstance(tags, list):
            fault("wrong-type", f"Tags property should be a list for parameter: {name}", "tags")
        constraints = _constraints(name, type_name, body.get("constraints"), version, fault)
        if faults:
            raise InvalidTemplate(faults)
        schema = cls(
            name,
            type_name,
            str(body.get("label") or name),
            _text(body.get("description")),
            body.get("default"),
            bool(body.get("hidden")),  # any text hides it, be it "false"
            tuple(constraints),
            bool(body.get("immutable")),
            tuple(str(tag) for tag in tags),
        )
        fault_ = None if schema.default is None else schema.wrong_default()
        if fault_ is not None:
            hint = ""
            if type_name == "string" and not isinstance(schema.default, str):
                hint = "write the default in quotes, as a text"
            fault("invalid-default", _invalid(name, fault_), "default", hint)
            raise InvalidTemplate(faults)
        return schema

    def convert(self, value: object) -> Any:
        """Return `value` as functions see it.

        Raises:
            ValueError: it is not of this type.
        """
        match self.type:
            case "string":
                return _text(value)
            case "number":
                return number(value)
            case "comma_delimited_list":
                return _items(value)
            case "json":
                return _json(value)
            case _:
                return _boolean(value)

    def broken(self, value: object) -> str | None:
        """Return the message of the first constraint that a converted value breaks.

        Raises:
            Misconfigured: a custom constraint's plugin is broken.
        """
        for constraint in self.constraints:
            fault = constraint.check(value, self.type)
            if fault is not None:
                return fault
        return None

    def wrong_default(self) -> str | None:
        """Return the fault in the default of the declaration.

        Constraints check it unconverted, except for lists and the bounds of numbers. A default that merely
        cannot be converted is no fault until it is used, and custom constraints, which may depend on existing
        resources, are checked on use.
        """
        default, checked = self.default, self.default
        if self.type == "comma_delimited_list":
            try:
                checked = _items(default) or [""] * (default == "")
            except ValueError as error:
                return str(error).replace("Value", "Default", 1)
        checkable = [constraint for constraint in self.constraints if not isinstance(constraint, Custom)]
        for constraint in checkable:
            try:
                # The values of allowed lists are converted for the comparison.
                numeric = self.type == "number" and not isinstance(constraint, AllowedValues)
                fault = constraint.check(number(default) if numeric else checked, self.type)
            except ValueError as error:
                fault = str(error)
            if fault is not None:
                return f"Invalid default {as_written(default)} ({fault})"
        return None

    def to_text(self, value: object) -> str:
        """Return a converted value the way the API shows it (§4.2)."""
        if isinstance(value, list) and self.type == "comma_delimited_list":
            return ",".join(map(str, value))
        if self.type == "json":
            return json.dumps(value)
        return _text(value)


class ParameterValues(JsonMapping):
    """The converted values of a stack's parameters, including pseudo parameters.

    `hidden` names values that must never be shown, `missing` declared parameters without a value (only with
    `missing_ok`).
    """

    __slots__ = ("_values", "hidden", "missing")

    def __init__(
        self,
        values: JsonMapping,
        hidden: frozenset[str] = frozenset(),
        missing: frozenset[str] = frozenset(),
    ) -> None:
        """Take values that are converted already."""
        self._values = dict(values)
        self.hidden = hidden
        self.missing = missing

    @classmethod
    def build(
        cls,
        schemas: Mapping[str, ParameterSchema],
        supplied: JsonMapping,
        defaults: JsonMapping,
        pseudo: JsonMapping,
        *,
        missing_ok: bool = False,
        parent: ParentResourceProxy | None = None,
        hide: Collection[str] = (),
    ) -> ParameterValues:
        """Select and convert the values: supplied, otherwise the environment's default, otherwise the
        template's.

        `parent` is the parent resource of a nested stack; `hide` names values that are secret independently
        of the template.

        Raises:
            InvalidTemplate: lists every fault; the path is the parameter's, under `parameters`.
        """
        build = _Build(schemas, missing_ok)
        build.unknown(supplied)
        values = {name: build.value(schema, supplied, defaults) for name, schema in schemas.items()}
        if build.faults:
            raise InvalidTemplate(build.faults)
        present = {name: value for name, value in values.items() if value is not _ABSENT}
        hidden = frozenset(name for name, schema in schemas.items() if schema.hidden or name in hide)
        if parent is None:
            return cls({**present, **pseudo}, hidden, frozenset(build.missing))
        facade = parent.values()
        hidden |= frozenset(facade) if parent.secret else frozenset()
        return cls({**present, **pseudo, **facade}, hidden, frozenset(build.missing))

    @property
    def parent(self) -> ParentResourceProxy | None:
        """The parent resource of a nested stack, None in a root stack."""
        values = self._values
        if FACADE["deletion_policy"] not in values:
            return None
        facade = {key: values.get(name) for key, name in FACADE.items()}
        return ParentResourceProxy(**facade, secret=FACADE["metadata"] in self.hidden)

    def __getitem__(self, name: str) -> Any:
        """Return a converted value."""
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names that have a value."""
        return iter(self._values)

    def __len__(self) -> int:
        """Count the values."""
        return len(self._values)

    def public(self, schemas: Mapping[str, ParameterSchema]) -> dict[str, str]:
        """Return the values as shown by the API, including pseudo parameters; hidden values are masked."""
        shown = {}
        for name, value in self._values.items():
            schema = schemas.get(name)
            shown[name] = MASK if name in self.hidden else schema.to_text(value) if schema else _text(value)
        return shown


@dataclass(slots=True)
class _Build:
    """Collects the faults of a set of values."""

    schemas: Mapping[str, ParameterSchema]
    missing_ok: bool
    faults: list[Diagnostic] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def value(self, schema: ParameterSchema, supplied: JsonMapping, defaults: JsonMapping) -> Any:
        """Return the effective value, `_ABSENT` if it is missing or faulty."""
        name = schema.name
        value_ = next(
            (v for v in (supplied.get(name), defaults.get(name), schema.default) if v is not None), None
        )
        if value_ is None:
            self.missing.append(name)
            if not self.missing_ok:
                message = f"The Parameter ({name}) was not provided."
                self.faults.append(
                    Diagnostic(
                        "missing-parameter", message, f"parameters.{name}", heat_type="UserParameterMissing"
                    )
                )
            return _ABSENT
        try:
            value = schema.convert(value_)
            fault_ = schema.broken(value)
        except ValueError as error:
            fault_ = str(error)
        if fault_ is None:
            return value
        if schema.hidden and not any(fault_ == c.description for c in schema.constraints):
            fault_ = "the value, which is hidden, is not accepted"  # other messages might quote it
        self.faults.append(Diagnostic("invalid-parameter", _invalid(name, fault_), f"parameters.{name}"))
        return _ABSENT

    def unknown(self, supplied: JsonMapping) -> None:
        """Report supplied names that the template does not declare."""
        hints = Hints()
        for name in supplied:
            if name not in self.schemas:
                message = f"The Parameter ({name}) was not defined in template."
                hint = hints.near(name, self.schemas.keys())
                self.faults.append(
                    Diagnostic(
                        "unknown-parameter",
                        message,
                        f"parameters.{name}",
                        hint=hint,
                        heat_type="UnknownUserParameter",
                    )
                )


def _type_hint(written: str) -> str:
    meant = TYPE_ALIASES.get(written.lower())
    return f'did you mean "{meant}"?' if meant else Hints().near(written, TYPES)


def _unknown_keys(body: JsonMapping, version: str) -> Iterator[tuple[str, str]]:
    """Yield the invalid keys of a declaration, each with a hint."""
    allowed = KEYS if version >= versions.WITH_TAGS else KEYS - {"tags"}
    for key in body:
        if key not in allowed:
            added_later = f"{key} was added in version {versions.WITH_TAGS}"
            yield key, added_later if key in KEYS else Hints().near(str(key), allowed)


def _constraints(
    name: str, type_name: object, items: object, version: str, fault: Report
) -> list[Constraint]:
    if items is None:
        return []
    if not isinstance(items, list):
        message = f"Invalid parameter constraints for parameter {name}, expected a list"
        fault("invalid-constraint", message, "constraints")
        return []
    made: list[Constraint] = []
    misplacements: list[tuple[str, str]] = []
    for index, item in enumerate(items):
        path = f"constraints[{index}]"
        try:
            constraint = constraint_from_hot(item, modulo=version >= versions.WITH_MODULO)
        except ValueError as error:
            hint = f"modulo was added in version {versions.WITH_MODULO}" if _has(item, "modulo") else ""
            fault("invalid-constraint", str(error), path, hint if version < versions.WITH_MODULO else "")
            continue
        fault_ = misplaced(constraint, type_name) if type_name in TYPES else None
        if fault_ is not None:
            misplacements.append((fault_, path))
        made.append(constraint)
    for fault_, path in misplacements:  # reported after unreadable constraints
        fault("invalid-constraint", _invalid(name, fault_), path)
    return made


def _has(item: object, key: str) -> bool:
    return isinstance(item, dict) and key in item


def _invalid(name: str, why: str) -> str:
    return f"Parameter '{name}' is invalid: {why}"


def _type_name(value: object) -> str:
    return type(value).__name__


def _text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _items(value: object) -> list[str]:
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    if isinstance(value, str):
        return value.split(",") if value else []
    raise ValueError(
        f"Value must be a comma-delimited list string: '{_type_name(value)}' object has no attribute 'split'"
    )


def _json(value: object) -> Any:
    try:
        if isinstance(value, str) and value:
            return read_json(value)
        if isinstance(value, float):
            number(value)
    except ValueError as error:
        raise ValueError(f"Value must be valid JSON: {error}") from None
    if too_deep(value, MAX_DEPTH):
        raise ValueError(f"Value must be valid JSON: nested deeper than {MAX_DEPTH}")
    return value


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    boolean = BOOLEANS.get(str(value).strip().lower())
    if boolean is None:
        allowed = ", ".join(f"'{name}'" for name in sorted(BOOLEANS))
        raise ValueError(f"Unrecognized value '{value}', acceptable values are: {allowed}")
    return boolean
