"""Constants of the product that tests replace, as if they were settings: in this process or in others.

A fixture takes them out of its settings (`take`), and replaces them here (`replace`) or in the processes that
it starts: these read them from the environment (`environment`) when they begin (`apply`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, MutableMapping
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import orjson

VARIABLE: Final = "TEST_CONSTANTS"
TREE: Final = Path(__file__).parents[1]
SITE: Final = TREE / "tests" / "plugins" / "constants"
PLACES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dispatch_window": "orchestrator.operations.runtime.dispatch_window:SIZE",
        "early_release": "orchestrator.operations.planning.definitions:EARLY_RELEASE",
        "inline_body_size": (
            "orchestrator.config:INLINE_BODY_SIZE orchestrator.operations.planning.process:MAX_INLINE_BYTES"
        ),
        "lease_seconds": "orchestrator.operations.runtime.lease_keeper:LEASE_SECONDS",
        "max_large_value_bytes": "orchestrator.operations.resource_context.large_values:MAX_BYTES_PER_STACK",
        "max_parsing_processes": "orchestrator.operations.offload:MAX_PROCESSES",
        "max_slow_bodies": "orchestrator.config:MAX_SLOW_BODIES",
        "observation_interval_seconds": "orchestrator.operations.observation.rounds:MAX_SECONDS",
        "observation_min_interval_seconds": "orchestrator.operations.observation.rounds:MIN_SECONDS",
        "observation_single_interval_seconds": "orchestrator.operations.observation.rounds:SINGLE_SECONDS",
        "planner_memory_limit": "orchestrator.operations.planner_process:MEMORY_BYTES",
        "quota_wait_seconds": "orchestrator.operations.reconcile.step_outcomes:QUOTA_SECONDS",
        "re_enqueue_seconds": "orchestrator.backoff:RE_ENQUEUE_SECONDS",
        "request_burst_seconds": "api.limits.rate_limits:BURST_SECONDS",
        "retry_max_seconds": "orchestrator.backoff:RETRY_MAX_SECONDS",
        "template_fetch_timeout": "orchestrator.clients.url_fetcher:FETCH_SECONDS",
        "webhook_max_attempts": "orchestrator.operations.events.webhook_delivery:MAX_ATTEMPTS",
        "webhook_timeout": "orchestrator.clients.webhook_sender:TIMEOUT_SECONDS",
    }
)
_of_test: list[Callable[[], None]] = []


def take(settings: MutableMapping[str, Any]) -> dict[str, Any]:
    """Remove the constants from the settings and return them."""
    return {name: settings.pop(name) for name in PLACES.keys() & settings.keys()}


def replace(values: Mapping[str, Any]) -> Callable[[], None]:
    """Replace constants; return the function that restores them."""
    former = []
    for name, value in values.items():
        for place in PLACES[name].split():
            module, _, constant = place.partition(":")
            owner = import_module(module)
            former.append((owner, constant, getattr(owner, constant)))
            setattr(owner, constant, value)

    def restore() -> None:
        for owner, constant, value in reversed(former):
            setattr(owner, constant, value)

    return restore


def replace_for_test(settings: MutableMapping[str, Any]) -> None:
    """Take constants out of the settings and replace them until the end of the test."""
    _of_test.append(replace(take(settings)))


def restore_after_test() -> None:
    """Restore the constants of `replace_for_test`."""
    while _of_test:
        _of_test.pop()()


def environment(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the environment with which other processes replace constants."""
    if not values:
        return {}
    path = os.pathsep.join([str(SITE), str(TREE), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {VARIABLE: orjson.dumps({**values}).decode(), "PYTHONPATH": path}


def apply() -> None:
    """Replace the constants that the environment names."""
    replace(orjson.loads(os.environ.get(VARIABLE, "{}")))
