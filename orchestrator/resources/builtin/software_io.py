"""Inputs and outputs of software configs: their schema, the input values of a deployment, and the
interpretation of reported output values (docs/internals/resource-types.md §A9, docs/internals/rest-api.md
§12). Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import orjson

from orchestrator.resources.software_api import Value
from orchestrator.schema.constraints import AllowedValues
from orchestrator.schema.properties import Property, PropertyFault, convert, join

TYPES: Final = ("String", "Number", "CommaDelimitedList", "Json", "Boolean")
STDOUT: Final = "deploy_stdout"
STDERR: Final = "deploy_stderr"
STATUS_CODE: Final = "deploy_status_code"
ALWAYS: Final = (STDOUT, STDERR, STATUS_CODE)  # outputs of every deployment, declared or not

_DEFAULTS: Final[Mapping[str, Mapping[str, Property]]] = {
    type_name: {"default": Property(schema_type, lax=schema_type == "list")}
    for type_name, schema_type in zip(TYPES, ("string", "number", "list", "map", "boolean"), strict=True)
}

INPUT: Final[Mapping[str, Property]] = {
    "name": Property("string", "Name of the input.", required=True),
    "description": Property("string", "Description."),
    "type": Property("string", "Type of its value.", default="String", constraints=(AllowedValues(TYPES),)),
    "default": Property("any", "The value if the deployment does not set the input."),
    "replace_on_change": Property(
        "boolean", "Whether a deployment is replaced, not updated, when the value changes.", default=False
    ),
}
OUTPUT: Final[Mapping[str, Property]] = {
    "name": Property("string", "Name of the output.", required=True),
    "description": Property("string", "Description."),
    "type": Property("string", "Type of its value.", default="String", constraints=(AllowedValues(TYPES),)),
    "error_output": Property(
        "boolean", "Whether a deployment has failed when this output has a value.", default=False
    ),
}
INPUTS: Final = Property("list", "The inputs of the config.", schema=Property("map", schema=INPUT))
OUTPUTS: Final = Property("list", "The outputs of the config.", schema=Property("map", schema=OUTPUT))


def read_inputs(
    declarations: Sequence[Mapping[str, Value]], path: str = "inputs"
) -> tuple[list[dict[str, Value]], list[PropertyFault]]:
    """Return the inputs in stored form (absent keys removed, defaults converted to the input's type, values
    unchanged) and all faults in them.
    """
    read, faults = [], []
    for index, item in enumerate(declarations):
        place = join(path, index)
        rest = {name: value for name, value in item.items() if name != "value"}
        declared, item_faults = convert(INPUT, rest, path=place)
        if (
            not item_faults
            and rest.get("type")
            and not (declared.get("default") == "" and declared["type"] != "String")
        ):
            item_faults = _typed(declared, place)
        stored = {
            name: value for name, value in declared.items() if rest.get(name) is not None or name == "type"
        }
        if not stored.get("replace_on_change"):
            stored.pop("replace_on_change", None)
        read.append(stored | ({"value": item["value"]} if "value" in item else {}))
        faults += item_faults
    return read, faults


def _typed(declared: dict[str, Value], place: str) -> list[PropertyFault]:
    """Convert the default to the input's type."""
    default = declared.get("default")
    if default is None:
        return []
    if declared["type"] == "Json" and isinstance(default, str):
        with suppress(orjson.JSONDecodeError):
            default = orjson.loads(default)
    converted, faults = convert(_DEFAULTS[declared["type"]], {"default": default}, path=place)
    declared |= converted
    return faults


def read_outputs(
    declarations: Sequence[Mapping[str, Value]], path: str = "outputs"
) -> tuple[list[dict[str, Value]], list[PropertyFault]]:
    """Return the outputs in stored form, and all faults in them."""
    read, faults = [], []
    for index, item in enumerate(declarations):
        declared, item_faults = convert(OUTPUT, item, path=join(path, index))
        always = ("type", "error_output")
        read.append({k: value for k, value in declared.items() if item.get(k) is not None or k in always})
        faults += item_faults
    return read, faults


def derive_inputs(
    declared: Iterable[Mapping[str, Value]],
    values: Mapping[str, Value],
    added: Iterable[tuple[str, Value, str]],
) -> list[dict[str, Value]]:
    """Return a deployment's inputs with their values: declared, undeclared and built-in inputs.

    `added` holds name, value and description of the built-in inputs.
    """
    remaining = dict(values)
    inputs = [{**item, "value": remaining.pop(item["name"], item.get("default"))} for item in declared]
    inputs += [{"name": name, "type": "String", "value": value} for name, value in remaining.items()]
    inputs += [
        {"name": name, "type": "String", "description": described, "value": value}
        for name, value, described in added
    ]
    return inputs


def values_of(inputs: Iterable[Mapping[str, Value]]) -> dict[str, Value]:
    """Return the inputs' values by name."""
    return {item["name"]: item.get("value") for item in inputs}


def asks_for_another(before: Iterable[Mapping[str, Value]], after: Iterable[Mapping[str, Value]]) -> bool:
    """Whether an input differs that replaces the deployment when it does."""
    old = values_of(before)
    return any(
        item["name"] in old and item.get("value") != old[item["name"]]
        for item in after
        if item.get("replace_on_change")
    )


class MissingInput(Exception):
    """A config refers to an input that the deployment does not set."""


def substitute(config: object, values: Mapping[str, Value], key: str, *, strict: bool) -> Any:
    """Return `config` with every `{key: name}` replaced by that input's value, null for an unset input.

    Raises:
        MissingInput: an unset input, unless unset inputs are allowed.
    """
    if isinstance(config, Mapping):
        if len(config) == 1 and isinstance(name := config.get(key), str):
            if strict and name not in values:
                raise MissingInput(name)
            return values.get(name)
        return {k: substitute(value, values, key, strict=strict) for k, value in config.items()}
    if isinstance(config, list | tuple):
        return [substitute(item, values, key, strict=strict) for item in config]
    return config


@dataclass(frozen=True, slots=True)
class AgentReport:
    """The result that an agent reported for a deployment."""

    failed: bool
    reason: str
    outputs: Mapping[str, Value]
    summary: str  # for the event: `succeeded`, `failed (2)`


def judge(
    outputs: Iterable[Mapping[str, Value]], details: Mapping[str, Value], recorded: Mapping[str, Value]
) -> AgentReport:
    """Interpret a reported result. `recorded` holds earlier outputs; outputs that are not reported again are
    kept.

    A status code other than 0, or a value of an output declared as an error output, is a failure.
    """
    code = details.get(STATUS_CODE)
    failures: dict[str, Value] = {}
    summary = "succeeded"
    if code and str(code) != "0":
        failures[STATUS_CODE] = f"Deployment exited with non-zero status code: {code}"
        summary = f"failed ({code})"
    came = dict(recorded)
    for output in outputs:
        name = output["name"]
        if name in details:
            came[name] = details[name]
            if output.get("error_output"):
                failures[name] = details[name]
                summary = "failed"
    came |= {name: details.get(name) for name in ALWAYS}
    reason = ", ".join(f"{name} : {reason_}" for name, reason_ in failures.items()) or "Outputs received"
    return AgentReport(bool(failures), reason, came, summary)


def actions_of(config: object) -> Iterator[str]:
    """Yield the actions that a config of the group `component` supports."""
    for item in config.get("configs") or () if isinstance(config, Mapping) else ():
        yield from item.get("actions") or ()
