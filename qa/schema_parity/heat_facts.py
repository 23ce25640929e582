"""Print the facts about the resource types of an installed Heat, as JSON with a type on each line.

    HEAT_VENV/bin/python qa/schema_parity/heat_facts.py > qa/schema_parity/heat-27.0.1.json

Runs in its own environment (`pip install openstack-heat==27.0.1`) and imports nothing of this project.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from unittest import mock

CONSTRAINTS = {
    "Length": lambda given: ["length", given.min, given.max],
    "Range": lambda given: ["range", given.min, given.max],
    "Modulo": lambda given: ["modulo", given.step, given.offset],
    "AllowedValues": lambda given: ["values", sorted(map(str, given.allowed))],
    "AllowedPattern": lambda given: ["pattern", given.pattern],
    "CustomConstraint": lambda given: ["custom", given.name],
}


class _Values(dict):  # type: ignore[type-arg]
    """Stands for the properties of a resource, with all values or with none."""

    def __init__(self, given: bool) -> None:
        super().__init__()
        self.given = given

    def __getitem__(self, name: str) -> str | None:
        return f"value of {name}" if self.given else None

    def __contains__(self, name: object) -> bool:
        return self.given

    def get(self, name: str, default: object = None) -> str | None:
        return self[name]


def property_facts(schema: Any) -> dict[str, Any]:
    """Return the facts about a property; those with their usual value are left out."""
    facts = {
        "type": schema.type.lower(),
        "required": bool(schema.required),
        "update_allowed": bool(schema.update_allowed),
        "immutable": bool(schema.immutable),
        "unimplemented": not schema.implemented,
        "support": schema.support_status.status,
        "default": schema.default,
        "constraints": sorted(CONSTRAINTS[type(item).__name__](item) for item in schema.constraints),
    }
    if schema.schema is not None:
        members = {"*": schema.schema[0]} if schema.type == schema.LIST else dict(schema.schema)
        facts["members"] = {name: property_facts(member) for name, member in members.items()}
    usual = {"support": "SUPPORTED", "default": None, "constraints": []}
    return {name: fact for name, fact in facts.items() if fact != usual.get(name, False)}


def schemas_of(class_: Any, name: str) -> dict[str, Any]:
    """Return the facts about the properties in a class variable."""
    from heat.engine import properties

    declared = properties.schemata(getattr(class_, name, {}) or {})
    return {key: property_facts(schema) for key, schema in declared.items()}


def attributes_of(class_: Any) -> dict[str, str]:
    """Return the attributes, each as its type, and the word `live` if Heat does not keep its value."""
    found = {}
    for declared in (class_.base_attributes_schema, class_.attributes_schema):
        for name, schema in (declared or {}).items():
            live = schema.cache_mode == schema.CACHE_NONE and (name != "show" or class_.entity)
            found[name] = (schema.type or "any").lower() + (" live" if live else "")
    return found


def rules_of(class_: Any) -> list[str]:
    """Return the translation rules: kind, path, and the source of the value."""
    found: set[str] = set()
    for given in (False, True):
        stub = object.__new__(class_)
        stub.properties, stub.stack, stub.t, stub.name = (
            _Values(given),
            mock.MagicMock(),
            mock.MagicMock(),
            "a",
        )
        with ExitStack() as patches:
            for name in ("client_plugin", "client", "physical_resource_name"):
                patches.enter_context(mock.patch.object(class_, name, mock.MagicMock()))
            for rule in class_.translation_rules(stub, stub.properties) or ():
                words = [rule.rule.lower(), ".".join(rule.translation_path)]
                if words[0] != "resolve":
                    words += [".".join(rule.value_path or ()) or rule.value_name or ""]
                found.add(" ".join(words).strip())
    return sorted(found)


def types() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the facts about each type of the global environment."""
    from heat.engine import environment, resources

    resources.initialise()
    registry = resources.global_env().registry._registry
    for name, entry in sorted(registry.items()):
        if isinstance(entry, environment.ClassResourceInfo):
            class_ = entry.value
            facts = {
                "support": class_.support_status.status,
                "name_limit": class_.physical_resource_name_limit,
                "properties": schemas_of(class_, "properties_schema"),
                "update_policy": schemas_of(class_, "update_policy_schema"),
                "attributes": attributes_of(class_),
                "rules": rules_of(class_),
            }
            yield (
                name,
                {key: fact for key, fact in facts.items() if fact and (key, fact) != ("name_limit", 255)},
            )


def main() -> None:
    """Print the facts."""
    logging.disable(logging.CRITICAL)
    from heat.common import config  # noqa: F401 - registers the options
    from oslo_config import cfg

    cfg.CONF([], project="heat")
    lines = [f"{json.dumps(name)}: {json.dumps(facts, sort_keys=True)}" for name, facts in types()]
    sys.stdout.write("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
