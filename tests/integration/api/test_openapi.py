"""The API's description: whole, true to its own schemas, kept up to date, and a page that loads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from flask import Flask
from jsonschema import Draft202012Validator

from api.openapi.document import OPERATIONS, undescribed
from api.openapi.views import POLICY
from api.request_steps import PUBLIC, UNVERSIONED
from tests.openapi import KEPT, application, described, written


@pytest.fixture(scope="module")
def app() -> Flask:
    return application()


@pytest.fixture(scope="module")
def document(app: Flask) -> dict[str, Any]:
    return described(app)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            yield f"{verb.upper()} {path}", operation


def test_every_route_and_method_is_described_and_nothing_else(app: Flask) -> None:
    assert undescribed(app) == [], "say in api/openapi what it answers: CONTRIBUTING.md, 'A new route'"


def test_the_stored_document_equals_the_served_document(document: dict[str, Any]) -> None:
    assert KEPT.read_bytes() == written(document), "renew docs/openapi.json: make openapi"


def test_path_parameters_are_documented_and_operation_ids_are_unique(document: dict[str, Any]) -> None:
    ids = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(ids)) == len(ids)
    for place, operation in operations(document):
        explained = {item["name"] for item in operation.get("parameters", ()) if item["in"] == "path"}
        assert explained == set(re.findall(r"{([^}]+)}", place)), place
        assert operation["summary"], place


def test_every_route_names_its_refusals(document: dict[str, Any]) -> None:
    for place, operation in operations(document):
        recorded = set(operation["responses"])
        if operation["security"] and "/v1/{project_id}" in place:
            assert recorded >= {"400", "401", "403", "404", "405", "500", "503"}, place
        assert any(status < "400" for status in recorded), place
    assert "409" in document["paths"]["/v1/{project_id}/stacks"]["post"]["responses"]
    assert "302" in document["paths"]["/v1/{project_id}/stacks/{stack_name}"]["patch"]["responses"]


def test_only_unversioned_paths_are_public() -> None:
    opened = {key for key, operation in OPERATIONS.items() if operation.secured == "none"}
    assert opened == UNVERSIONED | PUBLIC


def test_every_example_matches_its_schema(document: dict[str, Any]) -> None:
    def check(where: str, schema: dict[str, Any], example: Any) -> None:
        whole = {**schema, "components": document["components"]}
        errors = [error.message for error in Draft202012Validator(whole).iter_errors(example)]
        assert errors == [], where

    checked = 0
    for place, operation in operations(document):
        for value in operation.get("parameters", ()):
            if "example" in value:
                check(f"{place} {value['name']}", value["schema"], value["example"])
        bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
        for body in bodies:
            for content in body.get("content", {}).values():
                if "example" in content:
                    check(place, content["schema"], content["example"])
                    checked += 1
    assert checked > 60
    for name, schema in document["components"]["schemas"].items():
        Draft202012Validator.check_schema(schema)
        for field, part in schema.get("properties", {}).items():
            for example in part.get("examples", ()):
                check(f"{name}.{field}", part, example)


def test_the_page_shows_every_route_and_loads_nothing(app: Flask, document: dict[str, Any]) -> None:
    answer = app.test_client().get("/docs")
    assert (answer.status_code, answer.mimetype) == (200, "text/html")
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert "unsafe" not in POLICY
    for _, operation in operations(document):
        assert f'id="{operation["operationId"]}"' in answer.text
    assert not re.search(r"<(script|link|img|iframe)\b|\son\w+=|\sstyle=|@import|url\(", answer.text)
    assert set(re.findall(r'href="([^"#]+)', answer.text)) == {"openapi.json"}


def test_both_are_served_without_a_token_or_a_version(app: Flask) -> None:
    client = app.test_client()
    assert client.get("/openapi.json").get_json()["openapi"].startswith("3.1")
    for path in ("/v1/openapi.json", "/v1/docs"):
        assert client.get(path).status_code == 404
