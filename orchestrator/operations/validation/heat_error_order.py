"""Which of a template's faults Heat tells: it stops at the first, and does not go by the document.

Parameters' declarations come first, then what the resources are in themselves, values, types, references, and
only then what takes resource types to know (docs/internals/hot-language.md §12). The others keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from orchestrator.errors import Diagnostic
from orchestrator.template.formats import Keywords

DECLARATIONS, SECTIONS, STRUCTURE, VALUES, TYPES, REFERENCES, OUTPUTS, LATER = range(8)
PARAMETERS: Final = "parameters"  # where a value is at fault, whatever the dialect calls their declarations
_OF_VALUES: Final = frozenset({"invalid-parameter", "missing-parameter", "unknown-parameter"})
# What is wrong with an output in itself.
_OF_OUTPUTS: Final = frozenset({"output-not-a-map", "missing-value", "function-arguments", "condition"})
# What Heat sees only when it looks at a value as the property of a type.
_LATE: Final = frozenset(
    {
        "deletion-policy",
        "facade",
        "function-error",
        "function-removed",
        "missing-property",
        "nested-too-deep",
        "retired-type",
        "type-unavailable",
        "unimplemented-property",
        "unknown-attribute",
        "unknown-mapping",
        "unknown-name",
        "unknown-parameter",
        "unknown-property",
        "update-policy",
        "wrong-value",
    }
)


def heat_first(errors: Sequence[Diagnostic], words: Keywords) -> list[Diagnostic]:
    """Return the errors with the one in front that Heat would tell."""
    first = min(errors, key=lambda error: _rank(error, words))
    if first.code == "missing-type":  # keys come before it
        inside = f"{first.path}."
        keys = (one for one in errors if one.code == "unknown-key" and one.path.startswith(inside))
        first = next(keys, first)
    rest = (error for error in errors if error is not first)
    # Only in a nested template does Heat call an unknown section by a type of its own.
    told = replace(first, heat_type="StackValidationFailed") if first.code == "unknown-section" else first
    return [told, *rest]


def _rank(error: Diagnostic, words: Keywords) -> int:
    if error.file:
        return LATER
    section = error.path.partition(".")[0]
    if section == PARAMETERS and error.code in _OF_VALUES:
        return VALUES
    if section == words.parameters and error.path != section:
        return DECLARATIONS
    if error.code == "unknown-section":
        return SECTIONS
    if error.code == "unknown-type":
        return TYPES
    if section == words.outputs:
        return OUTPUTS if error.code in _OF_OUTPUTS else LATER
    if error.code in ("unknown-resource", "circular-dependency"):
        return REFERENCES
    return LATER if error.code in _LATE else STRUCTURE
