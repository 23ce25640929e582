"""Templates: validate, return, estimate cost."""

from __future__ import annotations

from typing import Final

import orjson

from api.cloudformation.arguments import COMBINATION, Arguments
from api.cloudformation.names import NoSuchStack, find_stack
from api.dependencies import dependencies, operation_context
from api.request.body import spooled_body
from orchestrator.errors import LimitExceeded
from orchestrator.json_types import JsonMapping, JsonObject
from orchestrator.operations.adoption.export import shown_template
from orchestrator.store.stacks import revisions

COST: Final = "http://en.wikipedia.org/wiki/Gratis"  # for Heat's clients
MAX_TEMPLATE_BYTES: Final = 16 << 20  # bytes of a template in a response


def validate_template(arguments: Arguments) -> JsonMapping:
    """Validate a template."""
    context, document = operation_context(), template_of(arguments)
    arguments.check()
    with spooled_body(document, context.settings) as body:
        result = dependencies().operations.validate(context, body)
    declared = result.get("Parameters") or {}
    return {
        "Description": result["Description"],
        "Parameters": [_parameter(name, schema) for name, schema in declared.items()],
        "Capabilities": [],
    }


def get_template(arguments: Arguments) -> JsonMapping:
    """Return the template of the stack's current revision."""
    stack = find_stack(arguments)
    database = dependencies().database
    revision = revisions.desired(database, stack)
    if revision is None:
        raise NoSuchStack(stack.name)
    text = bytearray()
    for slice_ in shown_template(database, dependencies().cipher, revision):
        text += slice_
        if len(text) > MAX_TEMPLATE_BYTES:
            raise LimitExceeded(
                f"The template has more than {MAX_TEMPLATE_BYTES} bytes. The native API shows it."
            )
    return {"TemplateBody": text.decode(), "StagesAvailable": ["Original"]}


def estimate_template_cost(arguments: Arguments) -> JsonMapping:
    """Return an empty cost estimate for a valid template."""
    validate_template(arguments)
    return {"Url": COST}


def template_of(arguments: Arguments, *, again: bool = False) -> JsonObject:
    """Return the template, or its URL, in the format of the operations.

    `again` keeps the current template; a given template is an error then.
    """
    text, url = arguments.text("TemplateBody"), arguments.text("TemplateURL", "TemplateUrl")
    sources = [name for name, value in (("TemplateBody", text), ("TemplateURL", url)) if value is not None]
    if again:
        sources.append("UsePreviousTemplate")
    if len(sources) > 1:
        arguments.fault("InvalidParameterCombination", f"{COMBINATION}:{' and '.join(sources)}")
    if not sources:
        arguments.missing("TemplateBody or TemplateURL")
    document = {"template": text, "template_url": url}
    return {name: value for name, value in document.items() if value is not None}


def _parameter(name: str, schema: JsonMapping) -> JsonObject:
    default = schema.get("Default")
    if default is not None and not isinstance(default, str):
        default = orjson.dumps(default).decode()
    return {
        "ParameterKey": name,
        "DefaultValue": default,
        "NoEcho": schema["NoEcho"] == "true",
        "Description": schema["Description"],
        "ParameterType": schema["Type"],
    }
