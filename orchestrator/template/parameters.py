"""Parameters: what a template declares, and the values a stack has (spec/hot-language.md §4)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from orchestrator.errors import Diagnostic, InvalidTemplate
from orchestrator.schema.constraints import Constraint, Custom, Modulo, constraint_from_hot
from orchestrator.template import versions
from orchestrator.template.diagnostics import Hints
from orchestrator.template.scalars import WHOLE

TYPES: Final = ("string", "number", "comma_delimited_list", "json", "boolean")
KEYS: Final = frozenset(
    {"type", "label", "description", "default", "hidden", "constraints", "immutable", "tags", "schema"}
)
PSEUDO: Final = ("OS::stack_id", "OS::stack_name", "OS::project_id")
RESERVED: Final = (*PSEUDO, "OS::region")  # the last is a name without a value
MASK: Final = "******"

TRUE: Final = frozenset({"t", "true", "on", "y", "yes", "1"})
FALSE: Final = frozenset({"f", "false", "off", "n", "no", "0"})
LONGEST_NUMBER: Final = 400  # characters; no number that fits is longer
DEEPEST_JSON: Final = 100


@dataclass(frozen=True, slots=True)
class ParameterSchema:
    """One declared parameter. `default` is None when there is none."""

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
    def from_hot(cls, name: str, body: Any, version: str) -> ParameterSchema:
        """Read a declaration.

        Raises:
            InvalidTemplate: with every fault of it; paths start at the declaration.
        """
        faults: list[Diagnostic] = []

        def fault(code: str, message: str, path: str = "", hint: str = "") -> None:
            faults.append(Diagnostic(code, message, path, hint=hint, heat_type="InvalidSchemaError"))

        if not isinstance(body, dict):
            fault(
                "parameter-not-a-map",
                f'"parameters" must contain a map of parameter maps. Found a [{_kind(body)}] instead',
            )
            raise InvalidTemplate(faults)
        allowed = KEYS if version >= versions.WITH_TAGS else KEYS - {"tags"}
        for key in body:
            if key not in allowed:
                hint = Hints().near(key, allowed)
                if key in KEYS:
                    hint = f"{key} came with version {versions.WITH_TAGS}"
                fault("unknown-key", f"Invalid key '{key}' for parameter ({name})", key, hint)
        kind: Any = body.get("type")
        if kind is None:
            fault("missing-type", f"Missing parameter type for parameter: {name}")
        elif kind not in TYPES:
            fault("unknown-type", f"Invalid type ({kind})", "type", Hints().near(str(kind), TYPES))
        for key in ("label", "description"):
            if isinstance(body.get(key), (dict, list)):
                fault("wrong-type", _invalid(name, f"{key} must be a string"), key)
        flags = {}
        for key in ("hidden", "immutable"):
            try:
                flags[key] = False if body.get(key) is None else _boolean(body[key])
            except ValueError as error:
                fault("wrong-type", _invalid(name, f"{key}: {error}"), key)
        tags = body.get("tags") or []
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            fault("wrong-type", _invalid(name, "tags must be a list of strings"), "tags")
        constraints: list[Constraint] = []
        if kind in TYPES:
            constraints = _constraints(name, kind, body.get("constraints"), version, fault)
        if faults:
            raise InvalidTemplate(faults)
        schema = cls(
            name,
            kind,
            str(body.get("label") or name),
            _text(body.get("description")),
            body.get("default"),
            flags["hidden"],
            tuple(constraints),
            flags["immutable"],
            tuple(tags),
        )
        if schema.default is not None:
            try:
                wrong = schema.broken(schema.convert(schema.default), at_definition=True)
            except ValueError as error:
                wrong = str(error)
            if wrong:
                fault(
                    "invalid-default",
                    _invalid(name, f"Invalid default {schema.default} ({wrong})"),
                    "default",
                )
                raise InvalidTemplate(faults)
        return schema

    def convert(self, value: Any) -> Any:
        """Return `value` as functions see it.

        Raises:
            ValueError: it is not of this type.
        """
        match self.type:
            case "string":
                return _string(value)
            case "number":
                return _number(value)
            case "comma_delimited_list":
                return _items(value)
            case "json":
                return _json(value)
            case _:
                return _boolean(value)

    def broken(self, value: Any, *, at_definition: bool = False) -> str | None:
        """Return the message of the first constraint that a converted value breaks.

        `at_definition` leaves out the custom ones, which may depend on what exists.
        """
        for constraint in self.constraints:
            if at_definition and isinstance(constraint, Custom):
                continue
            wrong = constraint.check(value, self.type)
            if wrong is not None:
                return wrong
        return None

    def to_text(self, value: Any) -> str:
        """Return a converted value the way the API shows it (§4.2)."""
        if isinstance(value, list) and self.type == "comma_delimited_list":
            return ",".join(map(str, value))
        if self.type == "json":
            return orjson.dumps(value).decode()
        return _text(value)


class ParameterValues(Mapping[str, Any]):
    """The converted values of a stack's parameters, the pseudo ones among them.

    `hidden` names those never to be shown, `missing` those declared that have no value (only with
    `missing_ok`).
    """

    __slots__ = ("_values", "hidden", "missing")

    def __init__(
        self,
        values: Mapping[str, Any],
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
        supplied: Mapping[str, Any],
        defaults: Mapping[str, Any],
        pseudo: Mapping[str, Any],
        *,
        missing_ok: bool = False,
    ) -> ParameterValues:
        """Choose and convert the values: supplied, else the environment's defaults, else the template's.

        Raises:
            InvalidTemplate: with every fault; the path is the parameter's, under `parameters`.
        """
        build = _Build(schemas)
        values = {name: build.value(schema, supplied, defaults) for name, schema in schemas.items()}
        build.unknown(supplied)
        if not missing_ok:
            build.report_missing()
        if build.faults:
            raise InvalidTemplate(build.faults)
        present = {name: value for name, value in values.items() if value is not None}
        hidden = frozenset(name for name, schema in schemas.items() if schema.hidden)
        return cls({**present, **pseudo}, hidden, frozenset(build.missing))

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
        """Return the texts that `show` gives, pseudo parameters included, hidden ones masked."""
        shown = {}
        for name, value in self._values.items():
            schema = schemas.get(name)
            shown[name] = MASK if name in self.hidden else schema.to_text(value) if schema else _text(value)
        return shown


@dataclass(slots=True)
class _Build:
    """Gathers the faults of one set of values."""

    schemas: Mapping[str, ParameterSchema]
    faults: list[Diagnostic] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def value(self, schema: ParameterSchema, supplied: Mapping[str, Any], defaults: Mapping[str, Any]) -> Any:
        """Return the effective value, None when there is none or it is wrong."""
        name = schema.name
        given = next(
            (v for v in (supplied.get(name), defaults.get(name), schema.default) if v is not None), None
        )
        if given is None:
            self.missing.append(name)
            return None
        try:
            value = schema.convert(given)
            wrong = schema.broken(value)
        except ValueError as error:
            wrong = str(error)
        if wrong is None:
            return value
        if schema.hidden and not any(wrong == c.description for c in schema.constraints):
            wrong = "the value, which is hidden, is not accepted"  # any other message might quote it
        self.faults.append(Diagnostic("invalid-parameter", _invalid(name, wrong), f"parameters.{name}"))
        return None

    def report_missing(self) -> None:
        """Turn what has no value into faults."""
        for name in self.missing:
            message = f"The Parameter ({name}) was not provided."
            self.faults.append(
                Diagnostic(
                    "missing-parameter", message, f"parameters.{name}", heat_type="UserParameterMissing"
                )
            )

    def unknown(self, supplied: Mapping[str, Any]) -> None:
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


def _constraints(name: str, kind: str, items: Any, version: str, fault: Any) -> list[Constraint]:
    if items is None:
        return []
    if not isinstance(items, list):
        fault(
            "invalid-constraint",
            _invalid(name, f"Invalid parameter constraints for parameter {name}, expected a list"),
            "constraints",
        )
        return []
    made: list[Constraint] = []
    for index, item in enumerate(items):
        try:
            constraint = constraint_from_hot(item, kind)
            if isinstance(constraint, Modulo) and version < versions.WITH_MODULO:
                raise ValueError("Invalid key 'modulo' for parameter constraints")
            made.append(constraint)
        except ValueError as error:
            fault("invalid-constraint", _invalid(name, str(error)), f"constraints[{index}]")
    return made


def _invalid(name: str, why: str) -> str:
    return f"Parameter '{name}' is invalid: {why}"


def _kind(value: Any) -> str:
    return type(value).__name__


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else str(value)


def _string(value: Any) -> str:
    if isinstance(value, (dict, list)):
        raise ValueError(f"Value must be a string; got {_kind(value)}")
    return _text(value)


def _number(value: Any) -> int | float:
    if isinstance(value, str):
        if len(value) > LONGEST_NUMBER:
            raise ValueError("the number is too long")
        try:
            value = int(value)
        except ValueError:
            value = float(value)  # its own message says what could not be read
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"Value must be a number; got {_kind(value)}")
    if isinstance(value, int):
        if value not in WHOLE:
            raise ValueError(f"{value} does not fit in 64 bits")
    elif not math.isfinite(value):
        raise ValueError(f"{value} is not a finite number")
    return value


def _items(value: Any) -> list[str]:
    if isinstance(value, (list, tuple)):
        return [_text(item) for item in value]
    if isinstance(value, str):
        return value.split(",") if value else []
    raise ValueError(f"Value must be a comma-delimited list string; got {_kind(value)}")


def _json(value: Any) -> Any:
    if isinstance(value, str):
        try:
            value = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            raise ValueError(f"Value must be valid JSON: {error}") from None
    elif not isinstance(value, (dict, list)):
        raise ValueError(f"Value must be valid JSON: got {_kind(value)}")
    if too_deep(value, DEEPEST_JSON):
        raise ValueError(f"Value must be valid JSON: nested deeper than {DEEPEST_JSON}")
    return value


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in TRUE:
        return True
    if word in FALSE:
        return False
    known = ", ".join(f"'{w}'" for w in sorted(TRUE | FALSE))
    raise ValueError(f"Unrecognized value '{value}', acceptable values are: {known}")


def too_deep(value: Any, limit: int) -> bool:
    """Return whether lists and maps are nested more than `limit` levels."""
    level: Sequence[Any] = [value] if isinstance(value, (dict, list)) else []
    depth = 0
    while level:
        depth += 1
        if depth > limit:
            return True
        level = [
            item
            for parent in level
            for item in (parent.values() if isinstance(parent, dict) else parent)
            if item.__class__ is dict or item.__class__ is list
        ]
    return False
