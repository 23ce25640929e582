"""The functions of the template language, one module per family; `registry.py` says how one is declared.

To add a function to the language, write it in its family's module under `@function` or `@raw_function`, and
its name in `versions.py`. Packages of their own bring theirs through entry points.
"""

from orchestrator.template.functions import (
    cloudformation,
    collections,
    condition_functions,
    digests,
    references,
    repeat,
    strings,
    urls,
    yaql_function,
)
from orchestrator.template.functions.registry import (
    ALL,
    HIDDEN,
    Function,
    FunctionError,
    References,
    UnknownParameter,
    UnknownReference,
    added,
    declared,
    plain,
    raw,
    removed,
)

__all__ = [
    "ALL",
    "HIDDEN",
    "Function",
    "FunctionError",
    "References",
    "UnknownParameter",
    "UnknownReference",
    "added",
    "cloudformation",
    "collections",
    "condition_functions",
    "declared",
    "digests",
    "plain",
    "raw",
    "references",
    "removed",
    "repeat",
    "strings",
    "urls",
    "yaql_function",
]
