"""The functions of the template language, a module per family; `registry.py` defines their declaration.

To add a function to the language, define it in the module of its family with `@function` or `@raw_function`,
and list its name in `versions.py`. Other packages add functions through entry points.
"""

from orchestrator.template.functions import (
    cloudformation,
    collections,
    condition_functions,
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
