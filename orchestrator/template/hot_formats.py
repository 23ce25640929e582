"""The versions of HOT as formats."""

from __future__ import annotations

from typing import Final

from orchestrator.template import versions
from orchestrator.template.formats import Format, Keywords
from orchestrator.template.functions import added, declared, removed


def hot(version: str, aliases: tuple[str, ...] = ()) -> Format:
    """Return the format of a HOT version."""
    functions = {name: declared(name, version) for name in versions.functions_of(version)}
    functions |= {name: f for name, f in added().items() if f.since <= version}
    functions |= {name: removed(name) for name in versions.removed_from(version)}
    conditions = {name: declared(name, version) for name in versions.conditions_of(version)}
    keywords = Keywords() if conditions else Keywords(conditions="", condition="", external_id="")
    return Format(versions.HOT_KEY, version, functions, conditions, aliases, keywords, rules=version)


FORMATS: Final = tuple(
    hot(version, tuple(alias for alias, date in versions.ALIASES.items() if date == version))
    for version in versions.VERSIONS
)
