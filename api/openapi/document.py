"""The OpenAPI document of an application: its routes, each with what is said of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from flask import Flask
from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from werkzeug.routing import Rule

from api.openapi import cfn, documents, events, resource_types, resources, stacks
from api.openapi.operation import Answer, Operation
from api.openapi.shapes import Fault, Unauthorized

OPERATIONS: Final = {
    **stacks.OPERATIONS,
    **resources.OPERATIONS,
    **documents.OPERATIONS,
    **resource_types.OPERATIONS,
    **cfn.OPERATIONS,
    **events.OPERATIONS,
}
REF: Final = "#/components/schemas/{model}"
VERB_ORDER: Final = ("get", "post", "put", "patch", "delete")

ABOUT: Final = """\
Heat's v1 API and what is beside it. `/v1.0` is the same as `/v1`, and links echo the one that was asked.

A body is a JSON object; `Content-Type` is `application/json`, `text/plain` or absent, anything else means no
body. Names in a query may come several times: one of them is enough. An empty value is an absent one, and an
integer is not negative. `OPTIONS` answers 204 with `Allow`; `HEAD` is 405. Every answer has a
`x-openstack-request-id`. Answers may have more keys than are named here.
"""

TAGS: Final = {
    "stacks": "Make, change, look at and remove stacks.",
    "lookup": "From a name, an id or an ARN to the stack's own place: repeat the request there.",
    "resources": "What a stack is made of, and what is told to it.",
    "events": "What happened.",
    "webhooks": "Who is told of what happens. Ours, beside what Heat has.",
    "documents": "What a stack was made from.",
    "snapshots": "Copies of a stack to go back to.",
    "history": "Every definition a stack had, and why it failed. Ours, beside what Heat has.",
    "why": "Why a stack is not done. Ours, beside what Heat has.",
    "catalogue": "What there is to make stacks of.",
    "software": "Configs and their deployments on machines.",
    "service": "The service itself.",
    "signed": "What servers ask in Amazon's way, known by a signature.",
}

# What stands in a path: what it is, and one such.
IN_PATHS: Final = {
    "project_id": ("The caller's project.", "demo"),
    "stack_name": ("The stack's name; where there is no id, also the id.", "web"),
    "stack_id": ("The stack's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "resource_name": ("The resource's name.", "one"),
    "event_id": ("The event's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "webhook_id": ("The webhook's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "snapshot_id": ("The snapshot's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "config_id": ("The config's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "deployment_id": ("The deployment's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "server_id": ("The machine's id.", "7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01"),
    "key": ("The output's name.", "it"),
    "type_name": ("The type's name.", "OS::Heat::RandomString"),
    "version": ("The version of the language.", "heat_template_version.2021-04-16"),
    "number": ("The revision's number.", "1"),
    "before": ("The number of the one.", "1"),
    "after": ("The number of the other.", "2"),
    "rest": (
        "The rest of the ARN, from the project on.",
        "openstack:heat::demo:stacks/web/7c6c8f58-4b32-4d6b-9a8e-6a5f3f1f9a01",
    ),
}

REFUSALS: Final = {
    400: Answer("Malformed, or refused in this state; every fault at once.", Fault),
    401: Answer(
        "Nobody is known by this token.", Unauthorized, headers={"WWW-Authenticate": "What would do."}
    ),
    403: Answer("The caller may not.", Fault),
    404: Answer("There is none, or it is somebody else's.", Fault),
    405: Answer("The path knows other methods.", Fault, headers={"Allow": "Which."}),
    408: Answer("The body came too slowly.", Fault),
    409: Answer("Busy, or the name is taken.", Fault),
    500: Answer("Our mistake; `error.id` is in the log.", Fault),
    503: Answer("The database cannot be reached; try again.", Fault),
}
EVERYWHERE: Final = {
    "token": (400, 401, 403, 404, 405, 500, 503),
    "signature": (404, 405, 500, 503),
    "nobody": (400, 405, 500),
}
SECURITY: Final[Mapping[str, list[dict[str, list[str]]]]] = {
    "token": [{"token": []}, {"basic": []}],
    "signature": [{"signature": []}],
    "nobody": [],
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
        "description": "HMAC-SHA256 by a resource's key: version 2 here, or version 4 in `Authorization`.",
    },
}


class Undescribed(LookupError):
    """Nothing is said of a route, or of something in its path: see CONTRIBUTING.md, "A new route"."""


class _Schemas(GenerateJsonSchema):
    """Schemas without a title for every field."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - as declared there
        return False


def document(app: Flask, version: str) -> dict[str, Any]:
    """Return the document of an application.

    Raises:
        Undescribed: a route is not described.
    """
    found = sorted(_described(app), key=lambda one: (one[0], VERB_ORDER.index(one[1])))
    schemas, shapes = _schemas([operation for _, _, _, operation in found])
    paths: dict[str, Any] = {}
    for path, verb, rule, operation in found:
        said = _operation(app, rule, verb, operation, schemas, shapes)
        paths.setdefault(path, {})[verb] = said
    refusals = {
        f"Refused{status}": _answer(answer, schemas, shapes, status) for status, answer in REFUSALS.items()
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Stack orchestrator",
            "version": version,
            "summary": "Declarative stacks over HTTP.",
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {"schemas": shapes, "responses": refusals, "securitySchemes": SCHEMES},
    }


def undescribed(app: Flask) -> list[str]:
    """Return the routes of which nothing is said, and what is said of routes there are not."""
    keys = {key for rule in app.url_map.iter_rules() for verb in _verbs(rule) for key in _keys(rule, verb)}
    missing = [
        f"{verb} {rule.endpoint} ({rule.rule})"
        for rule in app.url_map.iter_rules()
        for verb in _verbs(rule)
        if not OPERATIONS.keys() & set(_keys(rule, verb))
    ]
    return sorted(missing) + sorted(f"no route: {key}" for key in OPERATIONS.keys() - keys)


def _described(app: Flask) -> Iterator[tuple[str, str, Rule, Operation]]:
    """Yield every route and verb with what is said of it."""
    for rule in app.url_map.iter_rules():
        for verb in _verbs(rule):
            said = next((OPERATIONS[key] for key in _keys(rule, verb) if key in OPERATIONS), None)
            if said is None:
                raise Undescribed(f"{verb} {rule.endpoint} ({rule.rule})")
            yield _path(rule, said), verb.lower(), rule, said


def _verbs(rule: Rule) -> list[str]:
    return sorted((rule.methods or set()) - {"HEAD", "OPTIONS"})


def _keys(rule: Rule, verb: str) -> tuple[str, str]:
    return f"{verb} {rule.endpoint}", rule.endpoint


def _path(rule: Rule, operation: Operation) -> str:
    if operation.path is not None:
        return operation.path
    path = re.sub(r"<(?:[^:<>]+:)?([^<>]+)>", r"{\1}", rule.rule)
    return path if operation.secured == "nobody" else f"/v1{path}"


def _operation(
    app: Flask,
    rule: Rule,
    verb: str,
    operation: Operation,
    schemas: Mapping[Any, Any],
    shapes: dict[str, Any],
) -> dict[str, Any]:
    doc = (app.view_functions[rule.endpoint].__doc__ or "").strip().partition("\n")[0]
    alone = len(_verbs(rule)) == 1
    said: dict[str, Any] = {
        "operationId": rule.endpoint if alone else f"{rule.endpoint}.{verb}",
        "tags": [operation.tag],
        "summary": doc,
    }
    if operation.text:
        said["description"] = operation.text
    parameters = [*_in_path(_path(rule, operation)), *_in_query(operation, schemas, shapes)]
    if parameters:
        said["parameters"] = parameters
    if operation.body is not None:
        said["requestBody"] = {
            "required": operation.body_required,
            "content": {operation.body_media: _content(operation.body, schemas, shapes)},
        }
    answers: dict[str, Any] = {
        str(status): _answer(answer, schemas, shapes, status) for status, answer in operation.answers.items()
    }
    slow = () if operation.body is None else (408,)
    refused = {*EVERYWHERE[operation.secured], *operation.refuses, *slow} - operation.answers.keys()
    for status in sorted(refused):
        answers[str(status)] = {"$ref": f"#/components/responses/Refused{status}"}
    said["responses"] = answers
    said["security"] = SECURITY[operation.secured]
    return said


def _in_path(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{([^}]+)}", path):
        if name not in IN_PATHS:
            raise Undescribed(f"{{{name}}} in {path}")
        text, example = IN_PATHS[name]
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "description": text,
            "schema": {"type": "string", "minLength": 1},
            "example": example,
        }


def _in_query(
    operation: Operation, schemas: Mapping[Any, Any], shapes: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    if operation.query is None:
        return
    shape = _resolved(schemas[operation.query], shapes)
    for name, given in shape["properties"].items():
        schema = {
            key: value for key, value in given.items() if key not in {"description", "default", "examples"}
        }
        kinds = [kind for kind in schema.pop("anyOf", []) if kind != {"type": "null"}]
        if kinds:
            schema.update(kinds[0] if len(kinds) == 1 else {"anyOf": kinds})
        said: dict[str, Any] = {"name": name, "in": "query", "required": name in shape.get("required", ())}
        said["description"] = given.get("description") or schema.pop("description", "")
        schema.pop("description", None)
        schema.pop("examples", None)
        if schema.get("type") == "array":
            said |= {"style": "form", "explode": True}
        said["schema"] = schema
        examples = given.get("examples") or (kinds[0].get("examples") if kinds else None)
        if examples:
            said["example"] = examples[0]
        yield said


def _answer(
    answer: Answer, schemas: Mapping[Any, Any], shapes: Mapping[str, Any], status: int
) -> dict[str, Any]:
    said: dict[str, Any] = {"description": answer.text}
    if answer.headers:
        said["headers"] = {
            name: {"description": text, "schema": {"type": "string"}} for name, text in answer.headers.items()
        }
    if answer.shape is not None:
        kinds = {answer.media: answer.shape, **answer.also}
        said["content"] = {media: _content(shape, schemas, shapes) for media, shape in kinds.items()}
        if answer.shape is Fault and status != 400:
            said["content"][answer.media].pop("example")  # which is of a 400
    return said


def _content(shape: Any, schemas: Mapping[Any, Any], shapes: Mapping[str, Any]) -> dict[str, Any]:
    content = {"schema": schemas[shape]}
    found = example(schemas[shape], shapes)
    return content if found is _NONE else content | {"example": found}


_NONE: Final = object()


def example(schema: Mapping[str, Any], shapes: Mapping[str, Any]) -> Any:
    """Return what such a thing looks like, put together from the examples of its parts."""
    schema = _resolved(schema, shapes)
    if "examples" in schema:
        return schema["examples"][0]
    if "example" in schema:
        return schema["example"]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in schema.get("anyOf", ()):
        found = example(choice, shapes)
        if found is not _NONE:
            return found
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


def _resolved(schema: Mapping[str, Any], shapes: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref")
    return (
        {**shapes[name.rpartition("/")[2]], **{k: v for k, v in schema.items() if k != "$ref"}}
        if name
        else schema
    )


def _schemas(operations: Iterable[Operation]) -> tuple[Mapping[Any, Any], dict[str, Any]]:
    """Return the schema of every shape that is named, and what those refer to by name."""
    named: dict[Any, None] = {}
    for operation in operations:
        named.update(dict.fromkeys(shape for shape in (operation.query, operation.body) if shape is not None))
        for answer in operation.answers.values():
            named.update(dict.fromkeys(s for s in (answer.shape, *answer.also.values()) if s is not None))
    named.update(dict.fromkeys(answer.shape for answer in REFUSALS.values()))
    shapes = list(named)
    found, defined = TypeAdapter.json_schemas(
        [(number, "validation", TypeAdapter(shape)) for number, shape in enumerate(shapes)],
        ref_template=REF,
        schema_generator=_Schemas,
    )
    by_shape = {shape: found[number, "validation"] for number, shape in enumerate(shapes)}
    return by_shape, defined.get("$defs", {})
