"""Access to signals over HTTP: signed URLs and tokens that a stack's resources output
(docs/internals/rest-api.md §14, A8, A10).
"""

# ruff: noqa: F811 - fixtures are imported
from __future__ import annotations

import json
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from sqlalchemy import text

from orchestrator.operations.maintenance.rotate_keys import rotate_keys
from orchestrator.security.encryption import Cipher, new_key
from orchestrator.security.tokens import create_token
from tests.scenarios.keystone.access_world import api, code, out, served, tampered  # noqa: F401 - fixtures
from tests.scenarios.signals.test_wait_conditions import AWS_HANDLE, HANDLE, aws_condition, condition, drain
from tests.scenarios.world import World, test_resource

SAID = {"Status": "SUCCESS", "Reason": "r", "Data": "d", "UniqueId": "u"}


def signed_url(world):
    return out(world, {"get_resource": "h"}, {"h": AWS_HANDLE, "w": aws_condition(1)})


def counted(world):
    return world.rows("SELECT count(*) AS n FROM signal")[0].n


def test_a_signal_at_the_signed_url_makes_the_condition_ready(world: World, api):
    url = signed_url(world)
    answer = api.put(url, data=json.dumps(SAID))  # as curl sends it: a form, by its type
    assert (answer.status_code, answer.json) == (
        200,
        {"resource": "h", "metadata": {"u": {"Status": "SUCCESS", "Reason": "r", "Data": "d"}}},
    )
    drain(world)
    assert world.rows("SELECT status FROM stack")[0].status == "COMPLETE"


def test_only_the_url_as_it_was_given_out_is_good(world: World):
    api = served(world, auth="token", unauthenticated_rate_per_address=-1)  # without delays
    url = signed_url(world)
    body = json.dumps(SAID)
    invalid = parse_qs(urlsplit(url).query)["Signature"][0][:-5] + "AAAA="
    for changed, refusal in (
        (tampered(url, Signature=invalid), (403, "AccessDenied")),
        (tampered(url, Signature="ü"), (403, "AccessDenied")),
        (tampered(url, Timestamp="2036-01-01T00:00:00Z"), (403, "AccessDenied")),
        (tampered(url, Expires="1"), (403, "AccessDenied")),
        (tampered(url, SignatureMethod="None"), (403, "AccessDenied")),
        (tampered(url, SignatureVersion="0"), (403, "AccessDenied")),
        (tampered(url, AWSAccessKeyId="0" * 32), (403, "InvalidClientTokenId")),
        (tampered(url, AWSAccessKeyId=None), (403, "MissingAuthenticationToken")),
        (tampered(url, Signature=None), (400, "IncompleteSignature")),
        (url.replace("/resources/h?", "/resources/w?"), (403, "AccessDenied")),
    ):
        assert code(api.put(changed, data=body)) == refusal, changed
    assert api.post(url, data=body).status_code == 405
    other = url.replace("/waitcondition/", "/signal/")
    assert code(api.post(other, data=body)) == (403, "AccessDenied")
    assert counted(world) == 0
    assert api.put(url, data=body).status_code == 200


def test_a_url_is_good_behind_a_proxy_that_changes_host_and_path(world: World):
    world.engine = world.new_engine()
    world.settings.heat_metadata_server_url = "https://cloud.example/heat"
    api = served(world, auth="token", heat_metadata_server_url="https://cloud.example/heat/v1/")
    url = signed_url(world)
    assert url.startswith(
        "https://cloud.example/heat/v1/waitcondition/arn%3Aopenstack%3Aheat%3A%3Ap1%3Astacks/s/"
    )
    inside = url.replace("https://cloud.example/heat", "http://10.0.0.1:8004")
    assert api.put(inside, data=json.dumps(SAID)).status_code == 200
    assert api.put(tampered(inside, Timestamp="x"), data=json.dumps(SAID)).status_code == 403


def test_invalid_signals_are_refused_and_nothing_is_written(world: World, api):
    url = signed_url(world)
    for body, said in (
        ("{", None),
        ("[1]", None),
        ('{"Status": "SUCCESS"}', "Metadata format invalid"),
        ('{"Status": "MAYBE", "Reason": "", "Data": "", "UniqueId": "1"}', "Metadata format invalid"),
        ("[" * 500, None),
    ):
        answer = api.put(url, data=body)
        assert code(answer) == (400, "InvalidParameterValue"), body
        assert said is None or said in answer.text
    large = json.dumps({**SAID, "Data": "x" * 2_000_000})
    assert code(api.put(url, data=large)) == (400, "RequestLimitExceeded")
    large = api.put(url, data=large, headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert code(large) == (400, "RequestLimitExceeded")
    assert counted(world) == 0


def test_a_url_ends_with_its_resource(world: World, api):
    url = signed_url(world)
    api.put(url, data=json.dumps(SAID))
    drain(world)
    world.act("s", "suspend")
    drain(world)
    assert code(api.put(url, data=json.dumps(SAID))) == (403, "InvalidClientTokenId")
    world.act("s", "resume")
    drain(world)
    assert api.put(url, data=json.dumps(SAID)).status_code == 200
    drain(world)
    world.update("s", {"a": test_resource()})
    world.deliver_all()
    assert code(api.put(url, data=json.dumps(SAID))) == (403, "InvalidClientTokenId")
    assert world.rows("SELECT 1 FROM access") == []


def test_a_resource_that_is_being_deleted_takes_no_signal(world: World, api):
    url = signed_url(world)
    with world.database.engine.begin() as db:
        db.execute(text("UPDATE resource SET action = 'DELETE' WHERE name = 'h'"))
    answer = api.put(url, data=json.dumps(SAID))
    assert code(answer) == (400, "InvalidParameterValue")
    assert "Signal resource during DELETE is not supported." in answer.text
    assert counted(world) == 0


def test_secrets_are_nowhere_in_the_open(world: World, api):
    url = signed_url(world)
    [access] = world.rows("SELECT secret FROM access")
    secret = world.cipher.open(access.secret)
    signature = parse_qs(urlsplit(url).query)["Signature"][0]
    for table in ("access", "resource", "event", "graph_node", "revision", "resource_definition"):
        for row in world.rows(f"SELECT t::text AS whole FROM {table} t"):
            assert secret not in row.whole
            assert signature not in row.whole
            assert quote(signature, safe="") not in row.whole
    headers = {"X-Auth-Token": create_token(world.database, "p1")}
    stack = world.stack_row("s")
    for path in ("resources", "resources/h", "resources/w", "events", "resources/h/metadata"):
        answer = api.get(f"/v1/p1/stacks/s/{stack.uuid}/{path}", headers=headers)
        assert answer.status_code == 200
        assert secret not in answer.text
        assert quote(signature, safe="") not in answer.text


def test_keys_are_sealed_again_with_the_newest(world: World, api):
    url = signed_url(world)
    new = Cipher([new_key()])
    [row] = world.rows("SELECT secret FROM access")
    sealed = new.seal(world.cipher.open(row.secret))
    assert ("access.secret", 1, 0) in list(
        rotate_keys(world.database, Cipher([newest := new_key(), *_keys(world.cipher)]))
    )
    [row] = world.rows("SELECT secret FROM access")
    assert Cipher([newest]).open(row.secret) == new.open(sealed)
    assert url


def _keys(cipher):
    import base64

    return [
        base64.urlsafe_b64encode(_fernet._signing_key + _fernet._encryption_key).decode()
        for _fernet in cipher._fernet._fernets
    ]


def test_signals_are_shown_although_the_url_is_secret_and_the_templates_metadata_is_not(world: World, api):
    handle = {**AWS_HANDLE, "metadata": {"from": "template"}}
    url = out(world, {"get_resource": "h"}, {"h": handle})
    api.put(url, data=json.dumps(SAID))
    drain(world)
    headers = {"X-Auth-Token": create_token(world.database, "p1")}
    shown = api.get(f"/v1/p1/stacks/s/{world.stack_row('s').uuid}/resources/h/metadata", headers=headers)
    assert shown.json == {
        "metadata": {"from": "******", "u": {"Status": "SUCCESS", "Reason": "r", "Data": "d"}}
    }


class TestTokens:
    @pytest.fixture
    def given(self, world: World):
        """The attributes of the handle: token, endpoint, and the whole."""
        names = ["token", "endpoint", "curl_cli", "signal"]
        value = [{"get_attr": ["h", name]} for name in names]
        resources = {"h": HANDLE, "w": condition(1), "x": test_resource()}
        return dict(zip(names, out(world, value, resources), strict=True))

    def test_it_signals_its_own_resource_and_does_nothing_else(self, world: World, api, given):
        stack = world.stack_row("s")
        headers = {"X-Auth-Token": given["token"]}
        assert given["endpoint"] == f"http://127.0.0.1:8004/v1/p1/stacks/s/{stack.uuid}/resources/h/signal"
        place = f"/v1/p1/stacks/s/{stack.uuid}"
        for method, path, status in (
            ("GET", place, 403),
            ("DELETE", place, 403),
            ("GET", f"{place}/resources/h", 403),
            ("GET", f"{place}/resources", 403),
            ("GET", "/v1/p1/stacks", 403),
            ("POST", "/v1/p1/stacks", 403),
            ("POST", f"{place}/resources/x/signal", 403),
            ("GET", f"{place}/resources/x/metadata", 403),
            ("GET", f"{place}/resources/h/metadata", 200),
            ("GET", "/v1/p1/stacks/s", 302),
            ("GET", "/v1/p2/stacks/s", 403),
            ("POST", f"{place}/resources/h/signal", 200),
        ):
            answer = api.open(path, method=method, headers=headers)
            assert answer.status_code == status, (method, path, answer.text)
        drain(world)
        assert world.rows("SELECT status FROM stack")[0].status == "COMPLETE"

    def test_it_knows_no_other_stack(self, world: World, api, given):
        world.create("other", {"h": HANDLE})
        drain(world)
        headers = {"X-Auth-Token": given["token"]}
        assert api.get("/v1/p1/stacks/other", headers=headers).status_code == 404
        other = world.stack_row("other").uuid
        path = f"/v1/p1/stacks/other/{other}/resources/h/signal"
        assert api.post(path, headers=headers).status_code == 404

    def test_it_ends_with_the_resource(self, world: World, api, given):
        world.update("s", {"x": test_resource()})
        world.deliver_all()
        answer = api.post(given["endpoint"], headers={"X-Auth-Token": given["token"]})
        assert answer.status_code == 401

    def test_its_command_is_complete(self, given):
        assert given["curl_cli"] == (
            f"curl -i -X POST -H 'X-Auth-Token: {given['token']}' -H 'Content-Type: application/json' "
            f"-H 'Accept: application/json' {given['endpoint']}"
        )
        assert json.loads(given["signal"]) == {"endpoint": given["endpoint"], "token": given["token"]}


@pytest.mark.parametrize("transport", ["CFN_SIGNAL", "HEAT_SIGNAL"])
def test_the_attributes_of_a_handle_suffice_to_signal(world: World, api, transport):
    handle = {**HANDLE, "properties": {"signal_transport": transport}}
    reported = json.loads(out(world, {"get_attr": ["h", "signal"]}, {"h": handle, "w": condition(1)}))
    if transport == "CFN_SIGNAL":
        answer = api.put(reported["alarm_url"], data="{}")
    else:
        answer = api.post(reported["alarm_url"], headers={"X-Auth-Token": reported["token"]})
    assert answer.status_code == 200
    drain(world)
    assert world.rows("SELECT status FROM stack")[0].status == "COMPLETE"


@pytest.mark.parametrize("transport", ["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])
def test_a_transport_by_another_service_is_refused(world: World, transport):
    api = served(world)
    template = {
        "heat_template_version": "2021-04-16",
        "resources": {"h": {**HANDLE, "properties": {"signal_transport": transport}}},
    }
    answer = api.post("/v1/p1/stacks", json={"stack_name": "s", "template": template})
    assert answer.status_code == 400
    assert f"{transport} is not supported here." in answer.json["error"]["message"]
