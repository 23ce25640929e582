"""Requests for every operation of the API and every page of the console, with the rule of each.

Operations and their rules come from `docs/openapi.json`, pages from the routes of the
console, and decisions from the policy: a new operation is covered without a change here.
"""

from __future__ import annotations

import datetime as dt
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson
from flask import Flask

from api.request_steps import PUBLIC, UNVERSIONED
from orchestrator.resources.ec2_signatures import signature_v2
from orchestrator.security.key_pairs import create_key_pair
from orchestrator.security.policy import TABLE
from orchestrator.security.tokens import create_token, token_hash
from orchestrator.store.tables.access import Access
from orchestrator_console import authorization as pages
from orchestrator_console import session
from orchestrator_console.actions import BY_NAME
from orchestrator_console.app import PUBLIC as PUBLIC_PAGES
from tests.hostile.routes import quoted
from tests.integration.api_world import Made, World
from tests.openapi import KEPT

FOREIGN, STRANGER, AGENT = "foreign member", "unknown role", "heat_stack_user"
NONE, WRONG = "no credential", "wrong credential"
READER, MEMBER, ADMIN = "reader", "member", "admin"
CALLERS: Final = (NONE, WRONG, FOREIGN, STRANGER, AGENT, READER, MEMBER, ADMIN)
IMPLIED: Final = {READER: {READER}, MEMBER: {READER, MEMBER}, ADMIN: {READER, MEMBER, ADMIN}, AGENT: {AGENT}}
"""docs/authentication.md, "Roles"."""

SIGNED: Final = {"cfn.signal", "cfn.wait_condition"}  # their signature is the only credential
METHODS: Final = ("get", "post", "put", "patch", "delete")
HOST: Final = "localhost"


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation, and its rule in the policy: "" for public operations, None for signed URLs."""

    label: str
    method: str
    path: str
    rule: str | None
    body: Any = None
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Person:
    """A caller with all forms of its credentials."""

    name: str
    token: str | None
    keys: tuple[str, str] | None

    def allowed(self, rule: str) -> bool:
        """Whether the policy lets the caller use an operation of its project."""
        return not TABLE[rule].isdisjoint(IMPLIED.get(self.name, set()))

    @property
    def headers(self) -> dict[str, str]:
        """Return the token as a header. Wrong tokens differ, since repetitions are delayed."""
        token = f"orc_{uuid.uuid4().hex}" if self.name == WRONG else self.token
        return {} if token is None else {"X-Auth-Token": token}


def person(world: World, stack: Made, name: str) -> Person:
    """Return a caller; all but the foreign member belong to the project of the stack."""
    if name == NONE:
        return Person(name, None, None)
    if name == WRONG:
        return Person(name, None, None)
    if name == AGENT:
        return Person(name, *_agent(world, stack))
    project, role = (world.project(), MEMBER) if name == FOREIGN else (stack.project, name)
    keys = create_key_pair(world.database, world.cipher, project, roles=[role])
    return Person(name, create_token(world.database, project, name, roles=[role]), keys)


def _agent(world: World, stack: Made) -> tuple[str, tuple[str, str]]:
    """Grant the credentials of the resource `thing`."""
    token, keys = f"signal.{stack.uuid}", (stack.uuid.hex, "secret of the agent")
    with world.database.connect() as db:
        [(id_,)] = db.execute("SELECT id FROM resource WHERE stack_id = %s AND name = 'thing'", [stack.id])
    values = {"id": id_, "stack_id": stack.id, "key": keys[0], "secret": world.cipher.seal(keys[1])}
    world.insert(Access, {**values, "token_hash": token_hash(token)})
    return token, keys


def stack_of(world: World) -> Made:
    """Return a stack with a resource."""
    stack = world.stack(world.project(), "it", revision={"traversal": 1})
    world.resource(stack, "thing", physical_id="machine")
    world.event(stack, "thing")
    return stack


def values_of(stack: Made) -> dict[str, str]:
    """Return the values of the variables in paths; other objects' name none that exist."""
    named = {"resource_name": "thing", "server_id": "machine", "key": "it", "type_name": "Test::Plain"}
    path = f"stacks/{stack.name}/{stack.uuid}"
    named["rest"] = f"openstack:heat::{stack.project}:{path}"
    named["version"] = "heat_template_version.2021-04-16"
    named |= dict.fromkeys(("number", "before", "after"), "1")
    return {**named, "project_id": stack.project, "stack_name": stack.name, "stack_id": str(stack.uuid)}


def operations(app: Flask, stack: Made) -> Iterator[Operation]:
    """Yield every operation of the document, and each of its actions if they have separate rules."""
    values = values_of(stack)
    for template, item in orjson.loads(KEPT.read_bytes())["paths"].items():
        path = quoted(template.replace("{", "<").replace("}", ">"), _filled(template, values, stack))
        for method in (method for method in METHODS if method in item):
            endpoint = item[method]["operationId"]
            if endpoint not in app.view_functions:  # of several methods
                endpoint = endpoint.removesuffix(f".{method}")
            verb = method.upper()
            made = Operation(f"{verb} {template}", verb, path, item[method].get("x-policy"))
            yield from _with_rules(made, endpoint)


def _filled(template: str, values: Mapping[str, str], stack: Made) -> dict[str, str]:
    names = [part.split("}")[0] for part in template.split("{")[1:]]
    return {name: values.get(name, str(stack.uuid)) for name in names}


def _with_rules(made: Operation, endpoint: str) -> Iterator[Operation]:
    def ruled(rule: str | None, **more: Any) -> Operation:
        return Operation(f"{made.label} {rule}", made.method, made.path, rule, **more)

    if endpoint in UNVERSIONED | PUBLIC:
        yield replace(made, rule="")
    elif endpoint in SIGNED:
        yield ruled(None)
    elif endpoint == "cfn.query":
        for rule in sorted(rule for rule in TABLE if rule.startswith("cloudformation:")):
            named = {"StackName": "it", "LogicalResourceId": "thing", "PhysicalResourceId": "machine"}
            yield ruled(rule, query={"Action": rule.partition(":")[2], **named})
    elif endpoint == "stacks.act":
        for rule in sorted(rule for rule in TABLE if rule.startswith("actions:")):
            yield ruled(rule, body={rule.partition(":")[2]: None})
    elif endpoint == "stacks.update" and made.method == "PATCH":
        yield ruled("stacks:update_no_change", body={})
        yield ruled("stacks:update_patch", body={"parameters": {"size": 4}})
    elif endpoint == "stacks.update":
        yield ruled("stacks:update", body={})
    elif endpoint == "catalogue.services":
        yield ruled("service:index")
    else:
        assert made.rule is not None, f"{made.label} has no rule: api/middleware/authorization.py"
        yield ruled(made.rule, body=None if made.method in {"GET", "DELETE"} else {})


def signed(who: Person, operation: Operation) -> dict[str, str]:
    """Return the parameters of a CloudFormation query, signed with the keys of a caller."""
    keys = (uuid.uuid4().hex, "wrong") if who.name == WRONG else who.keys
    if keys is None:
        return dict(operation.query)
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    whole = {**operation.query, "AWSAccessKeyId": keys[0], "SignatureVersion": "2", "Timestamp": now}
    return {**whole, "Signature": signature_v2(keys[1], operation.method, HOST, "/v1/", whole)}


def console_pages(console: Flask, stack: Made) -> Iterator[Operation]:
    """Yield every page and form of the console, and the pages of actions for each action."""
    values = values_of(stack) | {"project": stack.project, "name": stack.name}
    for rule in console.url_map.iter_rules():
        for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
            for action in BY_NAME if "action" in rule.arguments else [""]:
                given = {name: values.get(name, "1") for name in rule.arguments} | {"action": action}
                used = {name: given[name] for name in rule.arguments}
                public = rule.endpoint in PUBLIC_PAGES
                named = public or rule.endpoint in pages.NAMES or rule.endpoint in pages.ACTIONS
                assert named, f"{rule.endpoint} has no name: orchestrator_console/authorization.py"
                name = "" if public else pages.name_of(rule.endpoint, action)
                label = f"{method} /ui{rule.rule} {action}"
                yield Operation(label, method, f"/ui{quoted(rule.rule, used)}", name, body={})


def cookie(world: World, who: Person) -> str | None:
    """Return the cookie of a session with the credentials of a caller."""
    token = who.headers.get("X-Auth-Token")
    if token is None:
        return None
    values = {"kind": "token", "value": token, "expires_at": time.time() + 600}
    return world.cipher.seal({"purpose": session.PURPOSE, **values}).decode()
