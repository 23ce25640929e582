"""Evaluate an expression as a template does: validate the unresolved form, then resolve it."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.errors import InvalidTemplate
from orchestrator.template.definition import ResourceProxy, StackDefinition
from orchestrator.template.formats import format_named
from orchestrator.template.functions import References
from orchestrator.template.parameters import ParameterValues

NEW = "2021-04-16"
CFN = "AWSTemplateFormatVersion.2010-09-09"
VALUES = ParameterValues(
    {
        "text": "a,b",
        "none": None,
        "list": ["a", "b"],
        "lists": [["a"], ["b"]],
        "maps": [{"a": 1}, {"b": 2}],
        "map": {"k": "v"},
        "number": 7,
    }
)
NOT_THERE_YET = ResourceProxy("r", None, {}, "INIT", "COMPLETE")


def given(name: str) -> dict[str, Any]:
    """Return a function that gives a parameter's value."""
    return {"get_param": name}


UNDECIDED = {"get_attr": ["r", "x"]}


def resolved(value: Any, version: str = NEW, *, strict: bool = True) -> Any:
    """Return the value of an expression."""
    return StackDefinition(version, VALUES, {"r": NOT_THERE_YET}, strict=strict).resolve(value)


def refused(value: dict[str, Any], version: str = NEW) -> str:
    """Return why an expression is refused when the template is read, or an empty text if it is not."""
    (name, args), *_ = value.items()
    try:
        format_named(version).functions[name].check(args, References())
    except (ValueError, TypeError) as error:
        return str(error)
    return ""


def failed(value: dict[str, Any], version: str = NEW) -> str:
    """Return why an expression that can be read cannot be resolved, without its place."""
    assert not refused(value, version)
    with pytest.raises(InvalidTemplate) as caught:
        resolved(value, version)
    return str(caught.value).removeprefix(f"{next(iter(value))}: ")
