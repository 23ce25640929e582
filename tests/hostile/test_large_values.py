"""Large values: checks of resources with values near the maximum delay no other tenant."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.embedded.valkey import Valkey
from orchestrator.template.functions.resolved_argument import MAX_PROPERTY_VALUES
from tests.e2e.running import Up, eventually
from tests.hostile.tenant import Tenant

ATTACKERS = 14
STACKS = 10  # of the other tenant during the attack
# For a stack of one resource, which waits for checks that arrived earlier. Without limits: 240 seconds.
MAX_SECONDS = 10.0
MAX_RATIO = 20.0  # the same on a loaded machine, in multiples of the time without an attack


def long_text() -> Any:
    """Return an expression for a text of almost 8 Mi characters."""
    value: Any = secrets.token_hex(510)
    for _ in range(13):
        value = {"str_replace": {"template": "aa", "params": {"a": value}}}
    return value


NUMBERS = {"numbers": {"type": "json", "default": {f"k{number}": number for number in range(1_000)}}}
VALUES = {"text": long_text(), "numbers": [{"get_param": "numbers"}] * 249}


@pytest.fixture(scope="module")
def two_workers(
    new_database: Callable[[], str],
    valkey_server: Valkey,
    broker_numbers: Iterator[int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Up]:
    """An installation with two workers."""
    env = {
        "ORCHESTRATOR_DATABASE_URL": new_database(),
        "ORCHESTRATOR_BROKER_URL": valkey_server.url(next(broker_numbers)),
    }
    running = Up(tmp_path_factory.mktemp("values") / "data", env=env, workers=2)
    running.wait_ready(120)
    yield running
    running.stop()


def create_seconds(tenant: Tenant, name: str) -> float:
    """Return the duration of creating a stack of one resource."""
    start = time.monotonic()
    tenant.create(name, {"a": {"type": "OS::Heat::RandomString"}})
    return time.monotonic() - start


def large_stack(value: Any, count: int) -> dict[str, Any]:
    """Return the request of a stack of resources with this value."""
    resource = {"type": "OS::Heat::Value", "properties": {"value": value}}
    template = {
        "heat_template_version": "2021-04-16",
        "parameters": NUMBERS,
        "resources": {f"v{number}": resource for number in range(count)},
    }
    return {"stack_name": "large", "template": template}


def test_the_properties_of_a_resource_have_a_maximum_number_of_values(tenant: Tenant) -> None:
    answer = tenant.client.post("/stacks", json=large_stack([{"get_param": "numbers"}] * 251, 1))
    assert answer.status_code == 400
    assert f"more than {MAX_PROPERTY_VALUES} values" in answer.json()["error"]["message"]


@pytest.mark.long
@pytest.mark.parametrize("kind", VALUES)
def test_large_values_of_a_tenant_delay_no_other_tenant(two_workers: Up, kind: str) -> None:
    attacker, victim = Tenant(two_workers.url), Tenant(two_workers.url)
    idle = [create_seconds(victim, f"idle{number}") for number in range(3)]
    answer = attacker.client.post("/stacks", json=large_stack(VALUES[kind], ATTACKERS))
    assert answer.status_code == 201, answer.text
    during = []
    for number in range(STACKS):
        during.append(create_seconds(victim, f"during{number}"))
        if attacker.status("large") != "CREATE_IN_PROGRESS":
            break
    assert max(during) < max(MAX_SECONDS, MAX_RATIO * max(idle)), (idle, during)
    eventually(lambda: attacker.status("large") != "CREATE_IN_PROGRESS", 300)
    assert attacker.status("large") == "CREATE_COMPLETE"
    for tenant in (attacker, victim):
        tenant.close()
