"""The functions of the template language, a module per family; `registry.py` defines their declaration.

* `references.py`: `get_param`, `get_attr`, `get_resource` and their CloudFormation forms
* `condition_functions.py`: `equals`, `not`, `and`, `or`; `../conditions.py` decides the conditions of a
  template
* `strings.py`, `collections.py`, `urls.py`, `repeat.py`, `yaql_function.py`, `cloudformation.py`: the further
  families

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
    "plain",
    "raw",
    "references",
    "removed",
    "repeat",
    "strings",
    "urls",
    "yaql_function",
]
