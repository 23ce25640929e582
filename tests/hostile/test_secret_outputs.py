"""Outputs with secrets: marked in the API, and shown on request only, which leaves an audit line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from flask.testing import FlaskClient

from api.middleware import audit
from orchestrator.security.tokens import create_token
from tests.hostile.test_credentials_in_answers import RESOURCES as EVERY_CREDENTIAL
from tests.integration.console.console_world import NAVIGATION
from tests.scenarios.conftest import cloud, kept, postgres_url, world
from tests.scenarios.keystone.access_world import serving
from tests.scenarios.world import World

__all__ = ["cloud", "kept", "postgres_url", "world"]  # fixtures

HIDDEN = "hidden-value-of-the-user"
PARAMETERS = {"password": {"type": "string", "hidden": True}, "plain": {"type": "string", "default": "open"}}
NESTED = {
    "heat_template_version": "2021-04-16",
    "parameters": {"word": {"type": "string"}},
    "outputs": {"word": {"value": {"get_param": "word"}}},
}
RESOURCES = {
    "random": {"type": "OS::Heat::RandomString"},
    "none": {"type": "OS::Heat::None"},
    "nested": {"type": "nested.yaml", "properties": {"word": {"get_param": "password"}}},
}
OUTPUTS: dict[str, Any] = {
    "parameter": {"value": {"get_param": "password"}},
    "within": {
        "value": {
            "list": ["a", {"str_replace": {"template": "<x>", "params": {"x": {"get_param": "password"}}}}]
        }
    },
    "attribute": {"value": {"get_attr": ["random", "value"]}},
    "reference": {"value": {"get_resource": "random"}},
    "of-nested": {"value": {"get_attr": ["nested", "word"]}},
    "open": {"value": {"get_param": "plain"}},
    "id": {"value": {"get_resource": "none"}},
}
SECRET = {"parameter", "within", "attribute", "reference", "of-nested"}


@pytest.fixture
def api(world: World) -> Iterator[FlaskClient]:
    """The API over the stack."""
    world.create(
        "s",
        RESOURCES,
        parameters=PARAMETERS,
        outputs=OUTPUTS,
        environment={"parameters": {"password": HIDDEN}},
        files={"nested.yaml": orjson.dumps(NESTED).decode()},
    )
    world.deliver_all()
    with serving(world, auth="token") as client:
        yield client


@pytest.fixture
def headers(world: World) -> dict[str, str]:
    return {"X-Auth-Token": create_token(world.database, "p1", roles=["reader"])}


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The actions in the audit lines."""
    found: list[str] = []

    class Log:
        def info(self, _event: str, **values: Any) -> None:
            found.append(values["action"])

    monkeypatch.setattr(audit, "log", Log())
    return found


def place(world: World) -> str:
    return f"/p1/stacks/s/{world.stack_row('s').uuid}"


def test_secret_outputs_are_marked_everywhere(
    world: World, api: FlaskClient, headers: dict[str, str], lines: list[str]
) -> None:
    def marked(outputs: list[dict[str, Any]]) -> set[str]:
        assert {output["output_key"] for output in outputs} == set(OUTPUTS)
        assert all(output.get("secret", True) is True for output in outputs)
        return {output["output_key"] for output in outputs if "secret" in output}

    path = f"/v1{place(world)}"
    listed = api.get(f"{path}/outputs", headers=headers).json["outputs"]
    assert marked(listed) == SECRET
    masked = api.get(f"{path}/outputs?with_values=true", headers=headers)
    assert marked(masked.json["outputs"]) == SECRET
    assert HIDDEN not in masked.text
    values = {output["output_key"]: output["output_value"] for output in masked.json["outputs"]}
    assert {values[name] for name in SECRET} == {"******"}
    assert (values["open"], values["id"] != "******") == ("open", True)
    assert lines == []
    assert marked(api.get(path, headers=headers).json["stack"]["outputs"]) == SECRET
    shown = [api.get(f"{path}/outputs/{key}", headers=headers).json["output"] for key in OUTPUTS]
    assert marked(shown) == SECRET
    assert shown[0]["output_value"] == HIDDEN
    assert lines == ["stacks:show", *["stacks:show_output"] * len(SECRET)]


def test_the_console_shows_a_secret_on_request_only(
    world: World, api: FlaskClient, headers: dict[str, str], lines: list[str]
) -> None:
    page = f"/ui{place(world)}/outputs"
    own = {**NAVIGATION, "Origin": "http://localhost"}
    api.post("/ui/sign-in", data={"token": headers["X-Auth-Token"]}, headers=own)
    stack = f"/ui{place(world)}"
    for path in (page, stack, f"{stack}/resources", f"{stack}/resources/random", f"{stack}/events"):
        text = api.get(path, headers=own).text
        assert HIDDEN not in text
        assert world.outputs("s")["attribute"] not in text
    assert lines == []
    before = api.get(page, headers=own).text
    assert set(re.findall(r'name="output" value="([^"]+)"', before)) == SECRET
    after = api.post(page, data={"output": "parameter"}, headers=own)
    assert after.status_code == 200
    assert HIDDEN in after.text
    assert world.outputs("s")["attribute"] not in after.text
    assert lines == ["stacks:show_output"]
    assert api.post(page, data={"output": "unknown"}, headers=own).status_code == 404
    foreign = {"Origin": "https://evil.example"}
    assert api.post(page, data={"output": "parameter"}, headers=foreign).status_code == 403
    assert api.post(page, data={"output": "parameter"}).status_code == 403


SIGNALS: dict[str, Any] = {
    "policy": {"get_attr": ["scale", "alarm_url"]},
    "url": {"get_resource": "url"},
    "token": {"get_attr": ["handle-TOK", "token"]},
    "command": {"get_attr": ["handle-TOK", "curl_cli"]},
    "within": {"all": [{"get_attr": ["handle-CFN", "signal"]}]},
    "password": {"get_attr": ["handle-HEA", "signal"]},
    "agent": {"get_attr": ["machine", "os_collect_config"]},
    "key": {"get_attr": ["key", "SecretAccessKey"]},
}
READABLE: dict[str, Any] = {
    "random": {"get_attr": ["random", "value"]},
    "hidden": {"get_param": "password"},
    "address": {"get_attr": ["scale", "signal_url"]},
}


def test_outputs_are_no_way_to_signal_for_a_reader(world: World) -> None:
    outputs = {name: {"value": value} for name, value in (SIGNALS | READABLE).items()}
    parameters = {"password": PARAMETERS["password"]}
    environment = {"parameters": {"password": HIDDEN}}
    world.create("t", EVERY_CREDENTIAL, parameters=parameters, outputs=outputs, environment=environment)
    world.deliver_all()
    place = f"/v1/p1/stacks/t/{world.stack_row('t').uuid}"
    with serving(world, auth="token") as api:
        for role in ("reader", "member", "admin"):
            headers = {"X-Auth-Token": create_token(world.database, "p1", roles=[role])}
            shown = api.get(place, headers=headers).json["stack"]["outputs"]
            single = [api.get(f"{place}/outputs/{key}", headers=headers).json["output"] for key in outputs]
            assert shown == single
            masked = {output["output_key"] for output in shown if output["output_value"] == "******"}
            assert masked == (set(SIGNALS) if role == "reader" else set())
            values = {output["output_key"]: output["output_value"] for output in shown}
            assert values["hidden"] == HIDDEN
            assert values["random"] != "******"
