"""The selection of Heat's own tests, and the classification of their results."""

from __future__ import annotations

import configparser
from pathlib import Path

import yaml
from click.testing import CliRunner

from qa.conformance import server
from qa.conformance.__main__ import main
from qa.conformance.chosen import Harness, not_passed


def test_without_the_harness_the_error_explains_the_setup(tmp_path):
    done = CliRunner().invoke(main, ["--dir", str(tmp_path)])
    assert done.exit_code == 1
    assert "make conformance CONFORMANCE_DIR=" in str(done.exception or done.output) + done.output


def test_the_published_list_is_run_unless_other_tests_are_named(tmp_path):
    harness = Harness(tmp_path)
    for name in ("run.sh", "public.sh"):
        (tmp_path / name).touch()
    assert harness.fault() is None
    conf, out = Path("e.conf"), Path("o.json")
    runs, published = str(tmp_path / "run.sh"), str(tmp_path / "public.sh")
    assert harness.command(conf, out, None, ()) == [published, "e.conf", "--out", "o.json"]
    assert harness.command(conf, out, None, ("a", "b")) == [runs, "e.conf", "a", "b", "--out", "o.json"]
    assert harness.command(conf, out, Path("l.txt"), ()) == [
        *(runs, "e.conf", "--ids", "l.txt", "--all"),
        *("--out", "o.json"),
    ]


def test_a_failed_test_is_reported_with_its_last_line():
    results = [
        {"id": "a", "result": "pass", "why": ""},
        {"id": "b", "result": "fail", "why": "first\n last\n\n"},
        {"id": "c", "result": "skip", "why": ""},
    ]
    assert list(not_passed({"tests": results})) == ["b fail: last", "c skip: nothing said"]


def test_the_harness_and_the_server_have_the_same_settings():
    ports = server.Ports(9201, 9202)
    reported = configparser.ConfigParser(interpolation=None)
    reported.read_string(server.endpoint(ports, 4))
    assert reported["identity"]["auth_url"] == "http://127.0.0.1:9202/v3"
    settings = server.settings(ports, "/c.yaml")
    assert settings["ORCHESTRATOR_KEYSTONE_AUTH_URL"] == reported["identity"]["auth_url"]
    assert settings["ORCHESTRATOR_HIDDEN_STACK_TAGS"] == reported["tests"]["hidden_stack_tag"]
    assert settings["ORCHESTRATOR_REGION_NAME"] == reported["identity"]["region"]
    standin = Harness(Path("/h")).identity(Path("/v"), ports)
    assert standin[:2] == ["/v/bin/python", "/h/standin_identity.py"]
    assert {"9202", "http://127.0.0.1:9201/v1/{project_id}"} < set(standin)
    regions = yaml.safe_load(server.catalog(ports, {"demo": server.Login("d", "t")}))["regions"]
    assert regions[reported["identity"]["region"]] == {
        "url": "http://127.0.0.1:9201/v1",
        "projects": {"d": {"project": "d", "token": "t"}},
    }
