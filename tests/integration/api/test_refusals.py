"""Refusals with texts that clients rely on, and Heat's limits (docs/internals/rest-api.md §1, §2).

An update during a delete is accepted here and refused by Heat: docs/compatibility.md.
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

from typing import Any

import pytest

from tests.integration.api.bad_input_world import HOT, IMMUTABLE, PLAIN, Served, made, served  # noqa: F401 - fixtures

NEEDY = {"heat_template_version": HOT, "parameters": {"p": {"type": "string"}}}
NOWHERE = "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"
MALFORMED = (
    "The server could not comply with the request since it is either malformed or otherwise incorrect."
)
EXPLANATIONS = {
    400: MALFORMED,
    403: "Access was denied to this resource.",
    404: "The resource could not be found.",
    405: MALFORMED,
    409: "There was a conflict when trying to complete your request.",
}


def resources(number: int) -> dict[str, Any]:
    return {**PLAIN, "resources": {f"r{item}": {"type": "OS::Heat::None"} for item in range(number)}}


def ring() -> dict[str, Any]:
    a = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["b", "value"]}}}
    b = {"type": "OS::Heat::Value", "properties": {"value": {"get_attr": ["a", "value"]}}}
    return {**PLAIN, "resources": {"a": a, "b": b}}


# name -> method, path (a stack in braces), body, status, error.type, error.message; "…": its beginning
REFUSED: dict[str, tuple[str, str, Any, int, str, str]] = {
    "no such stack": (
        *("GET", "/p/stacks/nope", None, 404),
        *("EntityNotFound", "The Stack (nope) could not be found."),
    ),
    "right id, wrong name": (
        *("GET", "{misnamed}", None, 404),
        *("EntityNotFound", "The Stack (misnamed) could not be found."),
    ),
    "duplicate name": (
        *("POST", "/p/stacks", made(stack_name="complete"), 409),
        *("StackExists", "The Stack (complete) already exists."),
    ),
    "duplicate name and a faulty template": (
        *("POST", "/p/stacks", made(stack_name="complete", template={"resources": {}}), 409),
        *("StackExists", "The Stack (complete) already exists."),
    ),
    "preview of a duplicate name and a faulty template": (
        *("POST", "/p/stacks/preview", made(stack_name="complete", template={"resources": {}}), 409),
        *("StackExists", "The Stack (complete) already exists."),
    ),
    "an old revision and a faulty template": (
        *("PUT", "{live}", {"template": {"resources": {}}, "expected_revision": 7}, 409),
        "RevisionChanged",
        "Stack live has revision 1, not 7: another request has changed it. Nothing was done.",
    ),
    "no such resource": (
        *("GET", "{complete}/resources/zz", None, 404),
        *("ResourceNotFound", "The Resource (zz) could not be found in Stack complete."),
    ),
    "snapshot of a busy stack": (
        *("POST", "{busy}/snapshots", {}, 409),
        *("ActionInProgress", "Stack busy already has an action (UPDATE) in progress."),
    ),
    "update of a suspended stack": (
        *("PUT", "{suspended}", {"template": PLAIN}, 400),
        *("NotSupported", "Updating a stack when it is suspended is not supported."),
    ),
    "cancel of what is not updated": (
        *("POST", "{complete}/actions", {"cancel_update": None}, 400),
        *("NotSupported", "Cancelling update when stack is CREATE_COMPLETE is not supported."),
    ),
    "abandon where it is off": (
        *("DELETE", "{complete}/abandon", None, 400),
        *("NotSupported", "Stack Abandon is not supported."),
    ),
    "export where it is off": (
        *("GET", "{complete}/export", None, 400),
        *("NotSupported", "Stack Abandon is not supported."),
    ),
    "adopt where it is off": (
        *("POST", "/p/stacks", {"stack_name": "s", "adopt_stack_data": "{}"}, 400),
        *("NotSupported", "Stack Adopt is not supported."),
    ),
    "signal to a stack that is suspended": (
        *("POST", "{suspended}/resources/one/signal", {}, 400),
        *("NotSupported", "Signal resource during SUSPEND is not supported."),
    ),
    "missing parameter": (
        *("POST", "/p/stacks", made(template=NEEDY), 400),
        *("UserParameterMissing", "The Parameter (p) was not provided."),
    ),
    "unknown parameter": (
        *("POST", "/p/stacks", made(parameters={"zz": 1}), 400),
        *("UnknownUserParameter", "The Parameter (zz) was not defined in template."),
    ),
    "immutable parameter": (
        *("PUT", "{fixed}", {"template": IMMUTABLE, "parameters": {"p": "y"}}, 400),
        *(
            "ImmutableParameterModified",
            "The following parameters are immutable and may not be updated: p",
        ),
    ),
    "too many stacks": (
        *("POST", "/full/stacks", made(), 400),
        "RequestLimitExceeded",
        "Request limit exceeded: You have reached the maximum stacks per tenant, 512."
        " Please delete some stacks.",
    ),
    "too many stacks and a faulty template": (
        *("POST", "/full/stacks", made(template={"resources": {}}), 400),
        "RequestLimitExceeded",
        "Request limit exceeded: You have reached the maximum stacks per tenant, 512."
        " Please delete some stacks.",
    ),
    "too large a template": (
        *("POST", "/p/stacks", made(template="#" * 524_289), 400),
        "RequestLimitExceeded",
        "Request limit exceeded: Template size (524289 bytes) exceeds maximum allowed size (524288 bytes).",
    ),
    "too many resources": (
        *("POST", "/p/stacks", made(template=resources(1_001)), 400),
        *("RequestLimitExceeded", "Request limit exceeded: Maximum resources per stack exceeded."),
    ),
    "a cycle": (
        *("POST", "/p/stacks", made(template=ring()), 400),
        *("CircularDependencyException", "Circular Dependency Found: …"),
    ),
    "a bad name": (
        *("POST", "/p/stacks", made(stack_name="1s"), 400),
        "StackValidationFailed",
        'Invalid stack name 1s must contain only alphanumeric or "_-." characters, must start with alpha '
        "and must be 255 characters or less.",
    ),
    "too long a name": (
        *("POST", "/p/stacks", made(stack_name="s" * 256), 400),
        *("StackValidationFailed", "Invalid stack name s…"),
    ),
    "no version of the language": (
        *("POST", "/p/stacks", made(template={"resources": {}}), 400),
        *("InvalidTemplateVersion|HTTPBadRequest", "Template not in valid format: …|The template version …"),
    ),
    "a text that is no template": (
        *("POST", "/p/stacks", made(template="a: ["), 400),
        *("HTTPBadRequest", "Template not in valid format: …|Error parsing template: …"),
    ),
    "a wrong section of an environment": (
        *("POST", "/p/stacks", made(environment={"zzz": {}}), 400),
        *("HTTPBadRequest", 'Environment not in valid format: environment has wrong section "zzz"'),
    ),
    "a faulty property": (
        "POST",
        "/p/stacks",
        made(
            template={
                **PLAIN,
                "resources": {"a": {"type": "OS::Heat::RandomString", "properties": {"length": "x"}}},
            }
        ),
        400,
        "StackValidationFailed",
        "Property error: : resources.a.properties.length: : …",
    ),
    "a type that is not there": (
        "POST",
        "/p/stacks",
        made(template={**PLAIN, "resources": {"a": {"type": "OS::Nova::Server"}}}),
        400,
        "ResourceTypeUnavailable|StackValidationFailed",
        "HEAT-E99001 Service nova is not available for resource type OS::Nova::Server, reason: …",
    ),
    "no name": ("POST", "/p/stacks", {"template": PLAIN}, 400, "HTTPBadRequest", "No stack name specified"),
    "no template": ("PUT", "{live}", {}, 400, "HTTPBadRequest", "No template specified"),
    "tags as a list": ("POST", "/p/stacks", made(tags=["a"]), 400, "…", "…"),
    "too long a tag": ("POST", "/p/stacks", made(tags="t" * 81), 400, "…", "Invalid tag, …"),
    "a negative timeout": ("POST", "/p/stacks", made(timeout_mins=-1), 400, "HTTPBadRequest", "…"),
    "a huge timeout": ("POST", "/p/stacks", made(timeout_mins=10**30), 400, "…", "…"),
    "no boolean": ("POST", "/p/stacks", made(disable_rollback="maybe"), 400, "…", "Unrecognized value …"),
    "converge of what is not there": ("POST", "/p/stacks", made(converge=True), 400, "…", "…"),
    "no action": ("POST", "{complete}/actions", {}, 400, "…", "No action specified"),
    "two actions": (
        *("POST", "{complete}/actions", {"check": None, "suspend": None}, 400),
        *("…", "Multiple actions specified"),
    ),
    "an unknown action": ("POST", "{complete}/actions", {"x": 1}, 400, "…", "Invalid action x specified"),
    "an unknown filter of resources": (
        *("GET", "{complete}/resources?zz=1", None, 400),
        *("…", "Invalid filter parameters ['zz']"),
    ),
    "no boolean in a query": (
        *("GET", "/p/stacks?show_nested=1", None, 400),
        *("…", 'Unrecognized value "1" for "show_nested", acceptable values are: true, false.'),
    ),
    "no integer in a query": (
        *("GET", "/p/stacks?limit=x", None, 400),
        *("…", "Only integer is acceptable by 'limit'."),
    ),
    "a negative integer in a query": (
        *("GET", "/p/stacks?limit=-1", None, 400),
        *("…", "Value '-1' is invalid for 'limit' which only accepts non-negative integer."),
    ),
    "a huge integer of other digits": ("GET", "{complete}/events?limit=" + "٣" * 5_000, None, 400, "…", "…"),
    "all projects": ("GET", "/p/stacks?global_tenant=true", None, 403, "Forbidden|HTTPForbidden", "…"),
    "an unknown output": (
        *("GET", "{complete}/outputs/zz", None, 404),
        *("NotFound", "Specified output key zz not found."),
    ),
    "an unknown snapshot": (
        *("GET", f"{{complete}}/snapshots/{NOWHERE}", None, 404),
        *("…", f"The Snapshot ({NOWHERE}) for Stack (complete) could not be found."),
    ),
    "an unknown type": ("GET", "/p/resource_types/Zz", None, 404, "…", "…"),
    "no such path": ("GET", "/p/zz", None, 404, "HTTPNotFound", "The resource could not be found."),
    "a slash at the end": ("GET", "/p/stacks/", None, 404, "HTTPNotFound", "…"),
    "the wrong method": ("PUT", "/p/stacks", {}, 405, "HTTPMethodNotAllowed", "…"),
    "an id that is none": ("GET", "/p/stacks/complete/'; DROP TABLE stack; --", None, 404, "…", "…"),
    "a filter that is SQL": ("GET", "{complete}/resources?name='%20OR%201=1&zz='", None, 400, "…", "…"),
    "a direction that is SQL": ("GET", "/p/stacks?sort_dir=asc;%20DROP%20TABLE%20stack", None, 400, "…", "…"),
    "a marker that is SQL": ("GET", "{complete}/why?marker=update.1.1;--", None, 400, "…", "…"),
    "a sequence that is SQL": ("GET", "{complete}/events?after=0.0'--", None, 400, "…", "…"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_in_heats_words_and_leaves_nothing(served: Served, case: str) -> None:
    method, path, body, status, kinds, messages = REFUSED[case]
    before = served.rows()
    additional = {} if body is None else {"json": body}
    refused = served.api.ask(method, path.format_map(served.places), status, **additional)
    if case != "signal to a stack that is suspended":  # this refusal writes an event
        assert served.rows() == before
    assert refused["code"] == status
    assert refused["explanation"] == EXPLANATIONS[status]
    error = refused["error"]
    assert error["traceback"] is None
    assert kinds == "…" or error["type"] in kinds.split("|")
    assert any(_like(error["message"], expected) for expected in messages.split("|")), error["message"]


def _like(message: str, expected: str) -> bool:
    return message.startswith(expected[:-1]) if expected.endswith("…") else message == expected
