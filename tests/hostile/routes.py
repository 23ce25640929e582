"""Every route of the API as a request: a new route is covered by the tests without a change here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import orjson

from api.request_steps import UNVERSIONED
from tests.openapi import application

PROJECT = "demo"
TEMPLATE = {"heat_template_version": "2021-04-16", "resources": {"one": {"type": "OS::Heat::None"}}}
# A body for all routes with a body. The routes ignore or reject unknown keys.
BODY = orjson.dumps({"stack_name": "intruder", "template": TEMPLATE, "suspend": None, "name": "intruder"})
FORM = "application/x-www-form-urlencoded"
QUERY = {"Action": "CreateStack", "StackName": "intruder", "TemplateBody": orjson.dumps(TEMPLATE).decode()}


@dataclass(frozen=True, slots=True)
class Route:
    """A request of a route."""

    endpoint: str
    method: str
    path: str
    body: bytes = b""
    kind: str = ""

    def __str__(self) -> str:
        return f"{self.method} {self.endpoint} {self.path}"

    @property
    def is_query(self) -> bool:
        """Whether it is a CloudFormation query, whose action may change something with every method."""
        return self.endpoint == "cfn.query"

    @property
    def is_unsafe(self) -> bool:
        return self.is_query or self.method not in {"GET", "HEAD", "OPTIONS"}


def routes(places: Mapping[str, str]) -> Iterator[Route]:
    """Yield each route with each of its methods; `places` are values of variables in paths."""
    for rule in application().url_map.iter_rules():
        prefix = "" if rule.endpoint in UNVERSIONED else "/v1"
        values = {name: places.get(name, "1") for name in rule.arguments}
        if rule.endpoint == "cfn.query":
            yield from _queries(rule.methods or ())
            continue
        path = prefix + quoted(rule.rule, values)
        for method in sorted(rule.methods or ()):
            has_body = method not in {"GET", "HEAD", "OPTIONS", "DELETE"}
            yield Route(rule.endpoint, method, path, BODY if has_body else b"")


def _queries(methods: object) -> Iterator[Route]:
    assert isinstance(methods, set)
    for method in sorted(methods - {"HEAD"}):
        if method == "GET":
            yield Route("cfn.query", method, f"/v1/?{urlencode(QUERY)}")
        else:
            yield Route("cfn.query", method, "/v1/", urlencode(QUERY).encode(), FORM)


def quoted(rule: str, values: Mapping[str, str]) -> str:
    """Return the path of a rule."""
    for name, value in values.items():
        for form in (f"<{name}>", f"<path:{name}>", f"<int:{name}>"):
            rule = rule.replace(form, quote(value, safe="/:"))
    assert "<" not in rule, rule
    return rule
