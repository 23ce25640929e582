"""The functions of the template language, one module per family; `registry.py` says how one is declared.

To add a function, write it in its family's module under `@function` or `@raw_function`. The names each
version has are in `versions.py`; a name without a declared function is refused as not supported yet.
"""

from orchestrator.template.functions import references, strings
from orchestrator.template.functions.registry import (
    Function,
    FunctionError,
    References,
    UnknownParameter,
    UnknownReference,
    callable_functions,
    table,
)

__all__ = [
    "Function",
    "FunctionError",
    "References",
    "UnknownParameter",
    "UnknownReference",
    "callable_functions",
    "references",
    "strings",
    "table",
]
