"""Differences between the recorded and the observed properties of a resource: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import orjson

from orchestrator.engine.observation.drift import Difference
from orchestrator.json_types import JsonMapping
from orchestrator.resources.base import ResourceType
from orchestrator.template.secret_values import MASK, NO_SECRETS, SecretValues

MAX_DIFFERENCES: Final = 100
MAX_BYTES: Final = 2_000  # of a value as JSON; longer values are cut

_ABSENT: Final = object()
_BLANK: Final[tuple[object, ...]] = (None, "", [], {}, ())


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a resource was built with.

    `chosen` are values that the orchestrator set without the template. `secrets` are masked; None: all
    values. The properties of a resource that is not `settled` are not compared:
    its last operation failed.
    """

    type: ResourceType
    properties: JsonMapping
    chosen: JsonMapping
    secrets: SecretValues | None = NO_SECRETS
    settled: bool = True


def differences(recorded: Recorded, found: JsonMapping) -> tuple[Difference, ...]:
    """Return the observed properties that differ from the recorded ones, by name.

    A property that neither the template nor the orchestrator set belongs to the provider, and one that is
    declared as `theirs` to others.
    """
    return tuple(islice(_differences(recorded, found), MAX_DIFFERENCES))


def _differences(recorded: Recorded, found: JsonMapping) -> Iterator[Difference]:
    type_, declared = recorded.type, recorded.type.properties
    for name in sorted(found):
        value = found[name]
        expected = recorded.properties.get(name, _ABSENT)
        if expected is _ABSENT or (expected in (None, "") and name in recorded.chosen):
            expected = recorded.chosen.get(name, _ABSENT)
            if expected is _ABSENT or value is None:
                continue
        property_ = declared.get(name)
        if (property_ is None and not type_.any_properties) or (property_ is not None and property_.theirs):
            continue
        if expected == value or _both_blank(expected, value) or type_.equal(name, expected, value):
            continue
        secrets = recorded.secrets
        for path, before, after in _members(name, expected, value):
            if secrets is None:
                yield Difference(path, MASK, MASK)
            else:  # the value found in place of a secret may be one
                found_value = secrets.masked(after, like=before)
                yield Difference(path, _short(secrets.masked(before)), _short(found_value))


def _both_blank(expected: object, found: object) -> bool:
    return any(expected == blank for blank in _BLANK) and any(found == blank for blank in _BLANK)


def _members(path: str, expected: object, found: object) -> Iterator[tuple[str, object, object]]:
    """Yield the members of maps that differ; other values differ as a whole."""
    if not (isinstance(expected, Mapping) and isinstance(found, Mapping)):
        yield path, expected, found
        return
    for key in sorted({*expected, *found}, key=str):
        before, after = expected.get(key), found.get(key)
        if before != after:
            yield from _members(f"{path}.{key}", before, after)


def _short(value: Any) -> Any:
    text = orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS)
    if len(text) <= MAX_BYTES:
        return orjson.loads(text)
    return text[:MAX_BYTES].decode(errors="ignore") + " …"
