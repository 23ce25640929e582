"""Observe the resources of a stack for a response, in parallel and within a time budget
(docs/internals/protocol.md rule 4).

"Unreachable" is never "absent": resources that could not be observed are reported apart from absent
resources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from orchestrator.engine.physical_names import physical_name
from orchestrator.engine.preview.results import CurrentResource
from orchestrator.operations.runtime import turns
from orchestrator.resources.base import Context, Observation, ResourceType
from orchestrator.resources.software_api import SoftwareStore
from orchestrator.resources.verbs.contexts import read_context

AT_ONCE: Final = 16  # parallel calls
LOOK_SECONDS: Final = 60.0  # for all calls; each call has its own deadline
MAX_REASON_CHARACTERS: Final = 300  # characters of the reason why a resource could not be observed


@dataclass(frozen=True, slots=True)
class LiveObservation:
    """Observations, health of failed resources, and the reasons why resources were not observed, by resource
    id.
    """

    observations: Mapping[int, Observation] = field(default_factory=dict)
    well: Mapping[int, bool] = field(default_factory=dict)
    unseen: Mapping[int, str] = field(default_factory=dict)


def observe_all(
    stack_name: str,
    things: Sequence[tuple[ResourceType, CurrentResource]],
    software: Callable[[str], SoftwareStore],
    seconds: float = LOOK_SECONDS,
    prepare: Callable[[Context], Context] = lambda ctx: ctx,
) -> LiveObservation:
    """Observe resources without an operation in progress; change nothing. `software` returns the store for a
    resource name.
    """
    pool = ThreadPoolExecutor(AT_ONCE, "look")
    try:
        futures = {
            pool.submit(
                _observe, stack_name, resource_type, resource, software(resource.name), prepare
            ): resource
            for resource_type, resource in things
        }
        turns.await_answers(futures, seconds)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    observations: dict[int, Observation] = {}
    well: dict[int, bool] = {}
    unseen: dict[int, str] = {}
    for future, resource in futures.items():
        error = _trouble(future)
        if error is None:
            observations[resource.id], well[resource.id] = future.result()
        else:
            unseen[resource.id] = error[:MAX_REASON_CHARACTERS]
    return LiveObservation(observations, well, unseen)


def _observe(
    stack_name: str,
    resource_type: ResourceType,
    resource: CurrentResource,
    software: SoftwareStore,
    prepare: Callable[[Context], Context],
) -> tuple[Observation, bool]:
    """Return the observation, and whether a failed resource is healthy."""
    name = physical_name(stack_name, resource.name, resource.uuid, resource_type.physical_name_limit)
    physical_id = resource.physical_id or ""
    ctx = read_context(
        resource.name,
        name,
        f"{resource.uuid}-look",
        properties=resource.properties,
        data=resource.data,
        software=software,
    )
    ctx = prepare(ctx)
    observation = resource_type.observe(ctx, physical_id)
    failed = resource.status == "FAILED" and bool(physical_id)
    return observation, failed and resource_type.is_healthy_after_failure(ctx, physical_id)


def _trouble(future: Future[tuple[Observation, bool]]) -> str | None:
    """Return the reason why there is no observation."""
    if future.cancelled() or not future.done():
        return "there was no answer in time"
    error = future.exception()
    return None if error is None else str(error) or type(error).__name__
