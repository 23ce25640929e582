"""The OpenAPI document of an application, built from its routes and their descriptions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from flask import Flask
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode
from werkzeug.routing import Rule

from api.middleware.authorization import ASKING, name_of
from api.openapi import (
    cfn,
    documents,
    events,
    observation,
    observations,
    pictures,
    resource_types,
    resources,
    service,
    software,
    stacks,
)
from api.openapi.operation import Operation, Response
from api.openapi.shapes import Fault, Unauthorized
from orchestrator.json_types import JsonMapping, JsonObject

OPERATIONS: Final = {
    **stacks.OPERATIONS,
    **resources.OPERATIONS,
    **documents.OPERATIONS,
    **observations.OPERATIONS,
    **pictures.OPERATIONS,
    **resource_types.OPERATIONS,
    **software.OPERATIONS,
    **service.OPERATIONS,
    **cfn.OPERATIONS,
    **events.OPERATIONS,
    **observation.OPERATIONS,
}
REF: Final = "#/components/schemas/{model}"
VERB_ORDER: Final = ("get", "post", "put", "patch", "delete")

DESCRIPTION: Final = """\
Heat's orchestration API v1 with extensions, which are marked "Extension". `/v1.0` is the same as `/v1`; links
use the prefix of the request.

A request body is a JSON object with the `Content-Type` `application/json`. With the authentication modes
`none` and `basic`, a body of any other type receives 415; otherwise `text/plain` and a missing type are
accepted as well, and a body of any other type is ignored. A repeated filter matches any of its values. An
empty query value counts as absent, and integers are not negative. `OPTIONS` returns 204 with `Allow`;
`HEAD` returns 405. Every response has the header `x-openstack-request-id`. Responses may have further keys.
"""

TAGS: Final = {
    "stacks": "Create, update, read and delete stacks.",
    "lookup": "Redirects from a name, an id or an ARN to the stack's canonical URL.",
    "resources": "Resources of a stack, signals, health marks and hooks.",
    "events": "Events of stacks, as lists and as streams.",
    "webhooks": "Webhooks that receive events. An extension of Heat's API.",
    "observation": "Policies, accepted differences and repairs. An extension of Heat's API.",
    "documents": "Template, environment and files of a stack.",
    "snapshots": "Snapshots of a stack, and restore.",
    "history": "Revisions of a stack, rollback, and causes of failure. An extension of Heat's API.",
    "observations": "Verdicts of the continuous observation. An extension of Heat's API.",
    "why": "Explanations of unfinished stacks, and progress. An extension of Heat's API.",
    "pictures": "Pictures of stacks of any size. An extension of Heat's API.",
    "catalogue": "Template validation, resource types, template versions and functions.",
    "software": "Software configs and their deployments to servers.",
    "service": "Versions, health, metrics and workers of the service.",
    "signed": "Amazon-compatible requests, authenticated by a signature.",
}

# Path parameters: description and example.
PATH_PARAMETERS: Final = {
    "project_id": ("The caller's project.", "demo"),
    "stack_name": ("The stack's name; in a path without an id, name or id.", "web"),
    "stack_id": ("The stack's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "resource_name": ("The resource's name.", "one"),
    "event_id": ("The event's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "webhook_id": ("The webhook's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "repair_id": ("The repair's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "rule_id": ("The policy's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "snapshot_id": ("The snapshot's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "config_id": ("The config's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "deployment_id": ("The deployment's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "server_id": ("The server's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "key": ("The output's name.", "it"),
    "type_name": ("The type's name.", "OS::Heat::RandomString"),
    "version": ("The template version.", "heat_template_version.2021-04-16"),
    "number": ("The revision's number.", "1"),
    "before": ("The number of the first revision.", "1"),
    "after": ("The number of the second revision.", "2"),
    "rest": (
        "The rest of the ARN, starting with the project.",
        "openstack:heat::demo:stacks/web/7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01",
    ),
}

ERROR_RESPONSES: Final = {
    400: Response(
        "The request is malformed or not allowed in this state; `errors` lists every fault.", Fault
    ),
    401: Response(
        "Credentials are missing or invalid.",
        Unauthorized,
        headers={"WWW-Authenticate": "The accepted authentication scheme."},
    ),
    403: Response("The caller lacks the permission.", Fault),
    404: Response("The object does not exist or is not visible to the caller.", Fault),
    405: Response(
        "The path does not support this method.", Fault, headers={"Allow": "The supported methods."}
    ),
    408: Response("The request body arrived too slowly.", Fault),
    409: Response("An action is in progress, or the name is taken.", Fault),
    415: Response("The body is not declared as JSON; only with the authentication `none` or `basic`.", Fault),
    421: Response("The host name is not a local one; only with the authentication `none`.", Fault),
    429: Response(
        "Too many requests of the caller, the project or the client address.",
        Fault,
        headers={"Retry-After": "The seconds until the next request."},
    ),
    500: Response("Internal error; `error.id` is also in the server's log.", Fault),
    503: Response("The database is unreachable; retry later.", Fault),
}
COMMON_STATUSES: Final = {
    "token": (400, 401, 403, 404, 405, 421, 429, 500, 503),
    "signature": (404, 405, 421, 429, 500, 503),
    "none": (400, 405, 421, 500),
}
SECURITY: Final[Mapping[str, list[dict[str, list[str]]]]] = {
    "token": [{"token": []}, {"basic": []}],
    "signature": [{"signature": []}],
    "none": [],
}
SCHEMES: Final = {
    "token": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Auth-Token",
        "description": "A token of this server (`orchestrator token create`) or of Keystone.",
    },
    "basic": {"type": "http", "scheme": "basic"},
    "signature": {
        "type": "apiKey",
        "in": "query",
        "name": "Signature",
        "description": "HMAC-SHA256 with a resource's key: version 2 here, or version 4 in `Authorization`.",
    },
}


class Undescribed(LookupError):
    """A route or path parameter has no description: see CONTRIBUTING.md, "A new route"."""


class _Schemas(GenerateJsonSchema):
    """Schemas without a title for every field."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002 - as declared there
        return False


def document(app: Flask, version: str) -> JsonObject:
    """Return the document of an application.

    Raises:
        Undescribed: a route is not described.
    """
    operations = sorted(_described(app), key=lambda item: (item[0], VERB_ORDER.index(item[1])))
    schemas, shapes = _schemas([operation for _, _, _, operation in operations])
    paths: JsonObject = {}
    for path, verb, rule, operation in operations:
        description = _operation(app, rule, verb, operation, schemas, shapes)
        paths.setdefault(path, {})[verb] = description
    refusals = {
        f"Refused{status}": _answer(answer, schemas, shapes, status)
        for status, answer in ERROR_RESPONSES.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stack orchestrator",
            "version": version,
            "summary": "Declarative stacks over HTTP.",
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {"schemas": shapes, "responses": refusals, "securitySchemes": SCHEMES},
    }


def undescribed(app: Flask) -> list[str]:
    """Return routes without a description, and descriptions without a route."""
    keys = {key for rule in app.url_map.iter_rules() for verb in _verbs(rule) for key in _keys(rule, verb)}
    missing = [
        f"{verb} {rule.endpoint} ({rule.rule})"
        for rule in app.url_map.iter_rules()
        for verb in _verbs(rule)
        if not OPERATIONS.keys() & set(_keys(rule, verb))
    ]
    return sorted(missing) + sorted(f"no route: {key}" for key in OPERATIONS.keys() - keys)


def _described(app: Flask) -> Iterator[tuple[str, str, Rule, Operation]]:
    """Yield every route and method with its description."""
    for rule in app.url_map.iter_rules():
        for verb in _verbs(rule):
            description = next((OPERATIONS[key] for key in _keys(rule, verb) if key in OPERATIONS), None)
            if description is None:
                raise Undescribed(f"{verb} {rule.endpoint} ({rule.rule})")
            yield _path(rule, description), verb.lower(), rule, description


def _verbs(rule: Rule) -> list[str]:
    return sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})


def _keys(rule: Rule, verb: str) -> tuple[str, str]:
    return f"{verb} {rule.endpoint}", rule.endpoint


def _path(rule: Rule, operation: Operation) -> str:
    if operation.path is not None:
        return operation.path
    path = re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)
    return path if operation.secured == "none" else f"/v1{path}"


def _operation(
    app: Flask,
    rule: Rule,
    verb: str,
    operation: Operation,
    schemas: Mapping[object, object],
    shapes: JsonObject,
) -> JsonObject:
    doc = (app.view_functions[rule.endpoint].__doc__ or "").strip().partition("\n")[0]
    alone = len(_verbs(rule)) == 1
    description: JsonObject = {
        "operationId": rule.endpoint if alone else f"{rule.endpoint}.{verb}",
        "tags": [operation.tag],
        "summary": doc,
    }
    if operation.text:
        description["description"] = operation.text
    if rule.endpoint not in ASKING and (policy := name_of(rule.endpoint, verb.upper())) is not None:
        description["x-policy"] = policy  # docs/authentication.md, "Policy file"
    parameters = [*_path_parameters(_path(rule, operation)), *_query_parameters(operation, schemas, shapes)]
    if parameters:
        description["parameters"] = parameters
    if operation.body is not None:
        description["requestBody"] = {
            "required": operation.body_required,
            "content": {operation.body_media: _content(operation.body, schemas, shapes)},
        }
    answers: JsonObject = {
        str(status): _answer(answer, schemas, shapes, status) for status, answer in operation.answers.items()
    }
    bodies = () if operation.body is None else (408, 415)
    refused = {*COMMON_STATUSES[operation.secured], *operation.refuses, *bodies} - operation.answers.keys()
    for status in sorted(refused):
        answers[str(status)] = {"$ref": f"#/components/responses/Refused{status}"}
    description["responses"] = answers
    description["security"] = SECURITY[operation.secured]
    return description


def _path_parameters(path: str) -> Iterator[JsonObject]:
    for name in re.findall(r"{([^}]+)}", path):
        if name not in PATH_PARAMETERS:
            raise Undescribed(f"{{{name}}} in {path}")
        text, example = PATH_PARAMETERS[name]
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": text,
            "schema": {"type": "string", "minLength": 1},
            "example": example,
        }


def _query_parameters(
    operation: Operation, schemas: Mapping[Any, Any], shapes: JsonMapping
) -> Iterator[JsonObject]:
    if operation.query is None:
        return
    shape = _resolved(schemas[operation.query], shapes)
    for name, values in shape["properties"].items():
        schema = {
            key: value for key, value in values.items() if key not in {"description", "default", "examples"}
        }
        kinds = [choice for choice in schema.pop("anyOf", []) if choice != {"type": "null"}]
        if kinds:
            schema.update(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})
        description: JsonObject = {
            "name": name,
            "in": "query",
            "required": name in shape.get("required", ()),
        }
        description["description"] = values.get("description") or schema.pop("description", "")
        schema.pop("description", None)
        schema.pop("examples", None)
        if schema.get("type") == "array":
            description |= {"style": "form", "explode": True}
        description["schema"] = schema
        examples = values.get("examples") or (kinds[0].get("examples") if kinds else None)
        if examples:
            description["example"] = examples[0]
        yield description


def _answer(
    answer: Response, schemas: Mapping[object, object], shapes: JsonMapping, status: int
) -> JsonObject:
    description: JsonObject = {"description": answer.text}
    if answer.headers:
        description["headers"] = {
            name: {"description": text, "schema": {"type": "string"}} for name, text in answer.headers.items()
        }
    if answer.shape is not None:
        kinds = {answer.media: answer.shape, **answer.also}
        description["content"] = {media: _content(shape, schemas, shapes) for media, shape in kinds.items()}
        if answer.shape is Fault and status != 400:
            description["content"][answer.media].pop("example")  # the example is of status 400
    return description


def _content(shape: Any, schemas: Mapping[Any, Any], shapes: JsonMapping) -> JsonObject:
    content = {"schema": schemas[shape]}
    value = example(schemas[shape], shapes)
    return content if value is _NONE else content | {"example": value}


_NONE: Final = object()


def example(schema: JsonMapping, shapes: JsonMapping) -> Any:
    """Return an example of a schema, composed of the examples of its parts."""
    schema = _resolved(schema, shapes)
    if "examples" in schema:
        return schema["examples"][0]
    if "example" in schema:
        return schema["example"]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in schema.get("anyOf", ()):
        value = example(choice, shapes)
        if value is not _NONE:
            return value
    match schema.get("type"):
        case "object" if "properties" in schema:
            parts = {
                name: example(part, shapes)
                for name, part in schema["properties"].items()
                if name in schema.get("required", ()) or "examples" in part
            }
            return {name: part for name, part in parts.items() if part is not _NONE}
        case "object":
            part = schema.get("additionalProperties")
            return {"length": example(part, shapes)} if isinstance(part, dict) and "$ref" in part else {}
        case "array":
            part = example(schema["items"], shapes)
            return [] if part is _NONE else [part]
        case "null":
            return None
    return _NONE


def _resolved(schema: JsonMapping, shapes: JsonMapping) -> JsonMapping:
    name = schema.get("$ref")
    return (
        {**shapes[name.rpartition("/")[2]], **{k: v for k, v in schema.items() if k != "$ref"}}
        if name
        else schema
    )


def _schemas(operations: Sequence[Operation]) -> tuple[Mapping[Any, Any], JsonObject]:
    """Return the schemas of all named shapes, and the shared definitions."""
    sent = [shape for operation in operations for shape in (operation.query, operation.body)]
    answers = [answer for operation in operations for answer in operation.answers.values()]
    answered = [shape for answer in answers for shape in (answer.shape, *answer.also.values())]
    answered += [answer.shape for answer in ERROR_RESPONSES.values()]
    modes: dict[Any, JsonSchemaMode] = dict.fromkeys(answered, "serialization")
    modes |= dict.fromkeys(sent, "validation")
    modes.pop(None, None)
    inputs, defined = TypeAdapter.json_schemas(
        [(number, mode, TypeAdapter(shape)) for number, (shape, mode) in enumerate(modes.items())],
        ref_template=REF,
        schema_generator=_Schemas,
    )
    by_shape = {shape: inputs[number, mode] for number, (shape, mode) in enumerate(modes.items())}
    return by_shape, defined.get("$defs", {})
