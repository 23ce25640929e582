"""Merge the environments that a request names among its files (docs/internals/hot-language.md §9.3).

The merge strategy of a parameter defines its value if several files set it: `overwrite`, `merge` or
`deep_merge`. The first file that sets the parameter selects the strategy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from orchestrator.errors import Diagnostic, InvalidTemplate, LimitExceeded, OrchestratorError
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.template.environment import Environment
from orchestrator.template.fault_locations import placed
from orchestrator.template.parameters import ParameterSchema
from orchestrator.template.parse import Limits, parse
from orchestrator.template.template import read

OVERWRITE: Final = "overwrite"
MERGE: Final = "merge"
DEEP_MERGE: Final = "deep_merge"
STRATEGIES: Final = (OVERWRITE, MERGE, DEEP_MERGE)
DEFAULT: Final = "default"  # the strategy of parameters without an entry
MAX_FILES: Final = 1000
MAX_REFERENCES: Final = 10  # maximum references to a file; otherwise a short request could cause much work


def merge_environment_files(
    names: Sequence[str],
    files: Mapping[str, str],
    schemas: Mapping[str, ParameterSchema],
    environment: Environment,
    limits: Limits | None = None,
    *,
    parameters_win: bool = False,
    warnings: list[Diagnostic] | None = None,
) -> Environment:
    """Return the merged environments of the files, merged over the request's parameters.

    `environment` holds the request's `parameters`, without the request's `environment`, which the files
    replace. As in Heat the values in files override those of the request; with `parameters_win`, a key of the
    request, the request's values override. `schemas` are the parameters of the root template and of every
    template in `files` (`schemas_in`); for a parameter in none of them, the value in the first file with
    parameters is kept, and values in later files are dropped. `warnings` collects those of the files.

    Raises:
        InvalidTemplate: lists every fault of every file.
        LimitExceeded: a file is too large or referenced too often, or too many files.
    """
    if len(names) > MAX_FILES:
        raise LimitExceeded(f"environment_files has {len(names)} names; at most {MAX_FILES} are merged.")
    for name, times in Counter(names).items():
        if times > MAX_REFERENCES:
            raise LimitExceeded(
                f"environment_files names {name} {times} times; at most {MAX_REFERENCES} are merged."
            )
    limits = limits or Limits()
    merging = _Merging(schemas)
    start = replace(environment, parameters={}) if parameters_win else environment
    merged = start
    secret = any(schema.hidden for schema in schemas.values())  # then the source line may contain a secret
    faults: list[Diagnostic] = []
    for name in names:
        try:
            parsed = Environment.parse(files[name], limits, file=name, warnings=warnings)
        except InvalidTemplate as error:
            faults += error.diagnostics
            continue
        merged = merging.merge(merged, parsed, name)
        if merging.faults:
            file_faults = placed(merging.faults, files[name], parse(files[name], limits, "environment"))
            faults += [replace(fault, excerpt="") for fault in file_faults] if secret else file_faults
            merging.faults = []
    if faults:
        raise InvalidTemplate(faults)
    return merged.with_parameters(environment.parameters) if parameters_win else merged


def without_secrets(
    names: Collection[str],
    files: Mapping[str, str],
    schemas: Mapping[str, ParameterSchema],
    limits: Limits | None = None,
) -> Mapping[str, str]:
    """Return the files that may be stored and shown: without environments that set a hidden parameter.

    The values of omitted environments are already merged, and stored encrypted. `schemas` are those of the
    merge.
    """
    hidden = {name for name, schema in schemas.items() if schema.hidden}
    if not hidden:
        return files
    secret = set()
    for name in dict.fromkeys(names):
        environment = Environment.parse(files[name], limits)
        if not hidden.isdisjoint(environment.parameters.keys() | environment.parameter_defaults.keys()):
            secret.add(name)
    return {name: text for name, text in files.items() if name not in secret}


def schemas_in(
    files: Mapping[str, str],
    declared: Mapping[str, ParameterSchema] = {},
    limits: Limits | None = None,
) -> dict[str, ParameterSchema]:
    """Return the parameters declared by the templates among `files`, overridden by a template's `declared`.

    A text that is not a template declares none; from a faulty template the readable part is used.
    """
    limits = limits or Limits()
    schemas: dict[str, ParameterSchema] = {}
    for text in files.values():
        if not isinstance(text, str) or "parameters" not in text.lower():
            continue
        try:
            schemas |= read(text, limits).parameters
        except OrchestratorError:
            continue
    return schemas | dict(declared)


@dataclass(slots=True)
class _Merging:
    """The state of the merge after the files so far."""

    schemas: Mapping[str, ParameterSchema]
    fixed: dict[str, str] = field(default_factory=dict)  # parameter -> strategy
    faults: list[Diagnostic] = field(default_factory=list)

    def merge(self, old: Environment, new: Environment, file: str) -> Environment:
        """Return `old` merged with the next file's environment."""
        strategies = new.parameter_merge_strategies
        self._check(strategies, file)
        return Environment(
            self._values(old.parameters, new.parameters, strategies, "parameters", file),
            self._values(
                old.parameter_defaults, new.parameter_defaults, strategies, "parameter_defaults", file
            ),
            _update(old.resource_registry, new.resource_registry),
            tuple(dict.fromkeys((*old.encrypted_param_names, *new.encrypted_param_names))),
            (*old.event_sinks, *(sink for sink in new.event_sinks if sink not in old.event_sinks)),
            observation_policy=new.observation_policy or old.observation_policy,
        )

    def _check(self, strategies: JsonMapping, file: str) -> None:
        for name, strategy in strategies.items():
            if strategy is not None and strategy not in STRATEGIES:
                self._fault(
                    f"Invalid merge strategy '{strategy}' for parameter '{name}'.",
                    f"parameter_merge_strategies.{name}",
                    file,
                    heat_type="InvalidMergeStrategyForParam",
                    hint=f"one of {', '.join(STRATEGIES)}",
                )

    def _values(
        self,
        old: JsonMapping,
        new: JsonMapping,
        strategies: JsonMapping,
        section: str,
        file: str,
    ) -> JsonObject:
        merged = dict(old)
        for name, value in new.items():
            if not old and (value is None or name not in self.schemas):
                # first value: kept; rejected later if the root template does not declare it
                merged[name] = value
            if value is None or name not in self.schemas:
                continue
            strategy = self._strategy(name, strategies, file)
            try:
                merged[name] = self._combined(name, strategy, old.get(name), value) if old else value
            except _NotMergeable as error:
                self._fault(str(error), f"{section}.{name}", file, error.heat_type)
        return merged

    def _strategy(self, name: str, strategies: JsonMapping, file: str) -> str:
        """Return how a parameter merges, from now on for all files."""
        strategy = (strategies[name] or OVERWRITE) if name in strategies else None
        fixed = self.fixed.get(name)
        if fixed is None:
            fixed = self.fixed[name] = strategy or strategies.get(DEFAULT) or OVERWRITE
        elif strategy is not None and strategy != fixed:
            self._fault(
                f"Conflicting merge strategy '{strategy}' for parameter '{name}' in file '{file}'.",
                f"parameter_merge_strategies.{name}",
                file,
                heat_type="ConflictingMergeStrategyForParam",
            )
        return fixed

    def _combined(self, name: str, strategy: str, old: object, new: object) -> Any:
        if strategy not in (MERGE, DEEP_MERGE):
            return new
        schema = self.schemas[name]
        if not old and schema.type != "boolean":  # rejected even as the first value
            return new
        match schema.type:
            case "boolean":
                raise _NotMergeable(
                    f"Invalid merge strategy '{MERGE}' for parameter '{name}'.",
                    "InvalidMergeStrategyForParam",
                )
            case "comma_delimited_list":
                return _lists(old, new, schema)
            case "json":
                return _maps(_map(old, schema), _map(new, schema), deep=strategy == DEEP_MERGE)
            case _:  # texts are concatenated, numbers added
                return _converted(old, schema) + _converted(new, schema)

    def _fault(self, message: str, path: str, file: str, heat_type: str, hint: str = "") -> None:
        self.faults.append(
            Diagnostic("merge-strategy", message, path, file=file, hint=hint, heat_type=heat_type)
        )


class _NotMergeable(Exception):
    """Two values that cannot be merged."""

    def __init__(self, message: str, heat_type: str = "HTTPBadRequest") -> None:
        super().__init__(message)
        self.heat_type = heat_type


def _converted(value: object, schema: ParameterSchema) -> Any:
    try:
        return schema.convert(value)
    except ValueError as error:
        why = "the value, which is hidden, is not accepted" if schema.hidden else error
        raise _NotMergeable(f"Invalid parameter in environment {why}.") from None


def _lists(old: object, new: object, schema: ParameterSchema) -> Any:
    """Return the concatenated lists; two texts stay a text."""
    if isinstance(old, str) and isinstance(new, str):
        return f"{old},{new}"
    if isinstance(old, list) and isinstance(new, list):
        return [*old, *new]
    return [*_converted(old, schema), *_converted(new, schema)]


def _map(value: object, schema: ParameterSchema) -> JsonObject:
    converted = _converted(value, schema) if value != "" else {}
    if not isinstance(converted, dict):
        type_name = type(converted).__name__
        raise _NotMergeable(
            f"Invalid parameter in environment Value must be a map to be merged; got {type_name}."
        )
    return converted


def _maps(old: JsonMapping, new: JsonMapping, *, deep: bool) -> JsonObject:
    """Return a map merged over another; null entries are skipped.

    With `deep`, nested maps, lists and texts are merged; values that cannot be merged are replaced.
    """
    merged = dict(old)
    for key, value in new.items():
        if value is not None:
            merged[key] = _nested(old.get(key), value) if deep else value
    return merged


def _nested(old: object, new: object) -> Any:
    match old, new:
        case dict(), dict():
            return _maps(old, new, deep=True)
        case list(), list():
            return [*old, *new]
        case str(), str():
            return old + new
    return new


def _update(old: JsonMapping, new: JsonMapping) -> JsonMapping:
    """Return a registry merged over another by entry; null entries do not remove mappings of another file."""
    if not old:
        return new
    return {**old, **{name: entry for name, entry in new.items() if entry is not None}}
