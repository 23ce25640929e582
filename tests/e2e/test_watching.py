"""Monitoring of a running server: metrics on a single page, and the path of a request through the log."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from orchestrator import metrics
from tests import constants
from tests.e2e.running import COMMAND, TEMPLATE, Up, eventually

MONITORING = Path(__file__).resolve().parents[2] / "docs" / "monitoring"
PROJECT = "a-project-of-its-own"
INNER = {"heat_template_version": "2021-04-16", "resources": {"inner": {"type": "OS::Heat::TestResource"}}}
NESTED = {
    "heat_template_version": "2021-04-16",
    "resources": {**TEMPLATE["resources"], "below": {"type": "inner.yaml"}},
}


@pytest.fixture(scope="module")
def up(start_up: Callable[..., Up], tmp_path_factory: pytest.TempPathFactory) -> Up:
    env = {"ORCHESTRATOR_LOG_LEVEL": "DEBUG", **constants.environment({"inline_body_size": 20_000})}
    folder = tmp_path_factory.mktemp("watched")
    # Executed: the library of metrics chooses at its import whether processes share their figures.
    return start_up(folder / "data", command=COMMAND, env=env).wait_ready()


@pytest.fixture(scope="module")
def made(up: Up) -> tuple[str, str]:
    """The id of a stack with another in it, and of the request that made it."""
    body = {"stack_name": "followed", "template": NESTED, "files": {"inner.yaml": json.dumps(INNER)}}
    return created(up, body)


def created(up: Up, body: dict[str, Any]) -> tuple[str, str]:
    answer = httpx.post(f"{up.url}/v1/{PROJECT}/stacks", json=body, timeout=30).raise_for_status()
    name = body["stack_name"]
    place = f"{up.url}/v1/{PROJECT}/stacks/{name}"
    eventually(
        lambda: httpx.get(place, follow_redirects=True).json()["stack"]["stack_status"] == "CREATE_COMPLETE"
    )
    return answer.json()["stack"]["id"], answer.headers["x-openstack-request-id"]


def lines(up: Up, **expected: Any) -> list[dict[str, Any]]:
    """Return the lines of all processes' logs that have these keys, with the process that wrote each."""
    result = []
    for path in sorted((up.data_dir / "logs").glob("*.log")):
        if path.stem in {"postgres", "valkey"}:
            continue
        for text in path.read_text().splitlines():
            line = {**json.loads(text), "process": path.stem}  # every line is JSON
            if expected.items() <= line.items():
                result.append(line)
    return result


def samples(up: Up) -> dict[str, list[tuple[dict[str, str], float]]]:
    answer = httpx.get(f"{up.url}/metrics").raise_for_status()
    assert answer.headers["content-type"].startswith("text/plain")
    result: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            result.setdefault(sample.name, []).append((sample.labels, sample.value))
    return result


def test_a_request_id_traces_a_create_across_processes(up: Up, made: tuple[str, str]) -> None:
    stack, request_id = made
    reported = eventually(
        lambda: (
            (result := lines(up, request_id=request_id))
            and any(line["event"] == "stack_complete" and line["stack"] == stack for line in result)
            and result
        )
    )
    assert {line["process"] for line in reported} == {"api", "check1"}
    [requests] = [line for line in reported if line["event"] == "request"]
    assert (requests["method"], requests["status"], requests["stack"]) == ("POST", 201, stack)
    assert requests["path"] == f"/v1/{PROJECT}/stacks"
    assert 0 < requests["seconds"] < 30
    checked = {line["resource"]: line for line in reported if line["event"] == "node_checked"}
    assert {"first", "second", "below", "inner"} <= set(checked)
    assert checked["first"]["stack"] == stack
    assert checked["inner"]["stack"] != stack  # the stack in it
    assert all(line["project"] == PROJECT and line["traversal"] == 1 for line in checked.values())
    assert sum(line["event"] == "plan_started" for line in reported) == 2
    assert sum(line["event"] == "stack_complete" for line in reported) == 2


def test_an_update_and_a_delete_have_ids_of_their_own_down_to_the_stacks_in_it(
    up: Up, made: tuple[str, str]
) -> None:
    stack, first = made
    place = f"{up.url}/v1/{PROJECT}/stacks/followed/{stack}"
    answer = httpx.delete(place, timeout=30)
    assert answer.status_code == 204
    request_id = answer.headers["x-openstack-request-id"]
    assert request_id != first
    ended = eventually(lambda: lines(up, request_id=request_id, event="stack_complete", stack=stack))
    assert ended[0]["action"] == "DELETE"
    assert "inner" in {line.get("resource") for line in lines(up, request_id=request_id)}


def test_a_template_read_in_a_process_of_its_own_keeps_the_id(up: Up) -> None:
    resources = {f"r{number}": {"type": "OS::Heat::TestResource"} for number in range(600)}
    body = {
        "stack_name": "large",
        "template": {"heat_template_version": "2021-04-16", "resources": resources},
    }
    stack, request_id = created(up, body)
    begun = eventually(lambda: lines(up, request_id=request_id, event="plan_started"))
    assert begun[0]["stack"] == stack
    eventually(lambda: lines(up, request_id=request_id, event="stack_complete"))


def test_no_secret_of_a_query_reaches_the_log(up: Up) -> None:
    httpx.get(f"{up.url}/v1/{PROJECT}/stacks", params={"Signature": "sesame", "limit": "1"})
    eventually(lambda: lines(up, event="request", endpoint="stacks.index"))
    logs = "".join(path.read_text() for path in Path(up.data_dir / "logs").glob("*.log"))
    assert "sesame" not in logs


def test_the_metrics_page_covers_all_processes(up: Up, made: tuple[str, str]) -> None:
    observed = samples(up)

    def value(name: str, **labels: str) -> float:
        return sum(number for have, number in observed[name] if labels.items() <= have.items())

    kind = "OS::Heat::RandomString"
    assert value("orchestrator_checks_total", type=kind, step="create", outcome="ready") >= 1
    assert value("orchestrator_checks_total", type="plan") >= 1
    assert value("orchestrator_check_duration_seconds_count", queue="check") >= 3
    assert (
        value("orchestrator_http_request_duration_seconds_count", endpoint="stacks.create", status="2xx") >= 1
    )
    assert {labels["queue"] for labels, _ in observed["orchestrator_queue_messages"]} == {
        "check",
        "provider",
        "observe",
        "bulk",
    }
    assert {labels["state"] for labels, _ in observed["orchestrator_nodes"]} == {
        "blocked",
        "queued",
        "checking",
        "waiting",
        "paused",
    }
    assert value("orchestrator_database_reachable") == value("orchestrator_broker_reachable") == 1
    assert value("orchestrator_database_connections_limit") == 24
    [(build, _)] = observed["orchestrator_build_info"]
    assert set(build) == {"version", "schema"}


def test_no_label_names_a_project_a_stack_a_path_or_an_unregistered_type(
    up: Up, made: tuple[str, str]
) -> None:
    stack, request_id = made
    text = httpx.get(f"{up.url}/metrics").text
    for keyword in (PROJECT, stack, "followed", request_id, "inner.yaml", "/v1"):
        assert keyword not in text
    assert 'type="other"' in text  # the stack in it, by the name of its template
    httpx.get(f"{up.url}/v1/{PROJECT}/no/such/path")
    assert 'endpoint="none"' in httpx.get(f"{up.url}/metrics").text


def test_figures_are_not_passed_on_by_a_proxy_on_this_machine(up: Up) -> None:
    answer = httpx.get(f"{up.url}/metrics", headers={"X-Forwarded-For": "203.0.113.9"})
    assert answer.status_code == 403
    assert "orchestrator_" not in answer.text


def test_it_says_of_each_part_that_it_is_well(up: Up) -> None:
    assert httpx.get(f"{up.url}/livez").json() == {"status": "ok"}
    answer = httpx.get(f"{up.url}/readyz").raise_for_status().json()
    assert answer["status"] == "ok"
    assert {name: part["status"] for name, part in answer["parts"].items()} == {
        "database": "ok",
        "broker": "ok",
        "schema": "ok",
    }
    assert answer["parts"]["database"]["collation"] == "builtin C.UTF-8"
    assert "warning" not in answer["parts"]["database"]
    assert all(part.get("seconds", 0) < 5 for part in answer["parts"].values())


def test_the_dashboard_the_rules_and_prometheus_settings_speak_of_figures_that_there_are(
    up: Up, made: tuple[str, str]
) -> None:
    dashboard = json.loads((MONITORING / "dashboard.json").read_text())
    rules = yaml.safe_load((MONITORING / "rules.yml").read_text())
    requests = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    requests += [rule["expr"] for group in rules["groups"] for rule in group["rules"]]
    named = {name for text in requests for name in re.findall(r"orchestrator_[a-z_]+", text)}
    declared = {sample.name for family in metrics._REGISTRY.collect() for sample in family.samples}
    declared |= {f"{family.name}_total" for family in metrics._REGISTRY.collect() if family.type == "counter"}
    declared |= {
        f"{family.name}_{part}"
        for family in metrics._REGISTRY.collect()
        if family.type == "histogram"
        for part in ("bucket", "count", "sum")
    }
    existing = set(samples(up)) | declared
    assert len(named) > 12
    assert named - existing == set()
    reported = {
        name for name in existing if name.startswith("orchestrator_") and not name.endswith("_created")
    }
    parts = {re.sub(r"_(bucket|count|sum)$", "", name) for name in reported}
    assert parts <= {re.sub(r"_(bucket|count|sum)$", "", name) for name in named}  # and leave none out
    jobs = yaml.safe_load((MONITORING / "prometheus.yml").read_text())["scrape_configs"]
    assert {job["job_name"] for job in jobs} == {"orchestrator", "orchestrator-workers"}
