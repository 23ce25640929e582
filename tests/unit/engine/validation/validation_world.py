"""Resource types for the tests of validation, and the faults of templates that use them."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.engine.validation.template import validate_stack
from orchestrator.engine.validation.type_resolution import TypeEnvironment, TypeResolver
from orchestrator.resources.base import Attribute, Property, ResourceType
from orchestrator.resources.builtin.delay import Delay
from orchestrator.resources.builtin.none import NoneResource
from orchestrator.resources.builtin.random_string import RandomString
from orchestrator.resources.builtin.test_resource import TestResource
from orchestrator.resources.builtin.value import ValueResource
from orchestrator.resources.registry import Registry
from orchestrator.schema.constraints import Range
from orchestrator.schema.translation import Replace
from orchestrator.template.environment import Environment
from orchestrator.template.parameters import ParameterValues
from orchestrator.template.parse import Limits
from orchestrator.template.template import load


class Server(ResourceType):
    """Has a property of each relevant kind."""

    name = "Test::Server"
    properties = {  # noqa: RUF012
        "size": Property("integer", required=True, constraints=(Range(1, 10),)),
        "description": Property("string", update_allowed=True),
        "tags": Property("list", schema=Property("string")),
    }
    attributes = {"address": Attribute("Where it is.")}  # noqa: RUF012
    can_snapshot = True


class Group(ResourceType):
    """Takes an update policy."""

    name = "Test::Group"
    update_policy = {  # noqa: RUF012
        "rolling": Property("map", schema={"size": Property("integer", constraints=(Range(1),))})
    }


class Old(ResourceType):
    """Is about to be retired, and keeps old names of its properties working."""

    name = "Test::Old"
    support_status = "DEPRECATED"
    properties = {  # noqa: RUF012
        "new": Property("integer"),
        "old": Property("integer", deprecated="use new"),
        "older": Property("integer"),
    }
    translation = (Replace(("new",), source=("older",)),)


TYPES = Registry.of(Delay, Group, NoneResource, Old, RandomString, Server, TestResource, ValueResource)
LIMITS = Limits()


def faults(resources, parameters=None, outputs=None, *, strict=True, timeout=3600.0, **supplied):
    """Validate a template of these sections; return (path, message) of every fault, in order."""
    result = diagnostics(resources, parameters, outputs, strict=strict, timeout=timeout, **supplied)
    return [(fault.path, fault.message) for fault in result]


def kinds(files=None, *, overlook=False):
    environment = TypeEnvironment.of_stack(TYPES, Environment(), files or {}, LIMITS)
    return TypeResolver(replace(environment, allow_unavailable=overlook))


def diagnostics(
    resources,
    parameters=None,
    outputs=None,
    *,
    strict=True,
    timeout=3600.0,
    overlook=False,
    files=None,
    **supplied,
):
    source = {
        "heat_template_version": "2016-10-14",
        "parameters": parameters or {},
        "resources": resources,
        "outputs": outputs or {},
    }
    template = load(source, LIMITS)
    values = ParameterValues.build(template.parameters, supplied, {}, {}, missing_ok=not strict)
    return validate_stack(
        template, values, kinds(files, overlook=overlook), strict=strict, stack_timeout_seconds=timeout
    )


def a(type_name, **keys):
    return {"type": type_name, **keys}


def severities(resources, **options):
    return [(fault.code, fault.severity) for fault in diagnostics(resources, **options)]
