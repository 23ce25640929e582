"""The order of a template's errors: the first error is the one that Heat would report.

Heat stops at its first error, and does not check in the document's order: first the declarations of
parameters, then the structure of resources, values, types, references, and finally all that requires resource
types (docs/internals/hot-language.md §12). All further errors keep their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from orchestrator.errors import Diagnostic
from orchestrator.template.formats import Keywords

DECLARATIONS, SECTIONS, STRUCTURE, VALUES, TYPES, REFERENCES, OUTPUTS, LATER = range(8)
PARAMETERS: Final = "parameters"  # path of a parameter's value, in every format
_OF_VALUES: Final = frozenset({"invalid-parameter", "missing-parameter", "unknown-parameter"})
# Faults in the structure of an output.
_OF_OUTPUTS: Final = frozenset({"output-not-a-map", "missing-value", "function-arguments", "condition"})
# Faults that Heat finds only when a type reads the value as a property.
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


def heat_first(errors: Sequence[Diagnostic], keywords: Keywords) -> list[Diagnostic]:
    """Return the errors, beginning with the error that Heat would report."""
    if not errors:
        return []
    first = min(errors, key=lambda error: _rank(error, keywords))
    if first.code == "missing-type":  # missing keys come before it
        inside = f"{first.path}."
        keys = (fault for fault in errors if fault.code == "unknown-key" and fault.path.startswith(inside))
        first = next(keys, first)
    rest = (error for error in errors if error is not first)
    # Heat reports an unknown section with its own error type only in a nested template.
    reported = replace(first, heat_type="StackValidationFailed") if first.code == "unknown-section" else first
    return [reported, *rest]


def _rank(error: Diagnostic, keywords: Keywords) -> int:
    if error.file:
        return LATER
    section = error.path.partition(".")[0]
    if section == PARAMETERS and error.code in _OF_VALUES:
        return VALUES
    if section == keywords.parameters and error.path != section:
        return DECLARATIONS
    if error.code == "unknown-section":
        return SECTIONS
    if error.code == "unknown-type":
        return TYPES
    if section == keywords.outputs:
        return OUTPUTS if error.code in _OF_OUTPUTS else LATER
    if error.code in ("unknown-resource", "circular-dependency"):
        return REFERENCES
    return LATER if error.code in _LATE else STRUCTURE
