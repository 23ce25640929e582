"""The service itself: versions, build, workers, health, metrics and this description."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from api.openapi.operation import Operation, Operations, Response, ok
from api.openapi.shapes import Link, State
from orchestrator.bodies.model import Id, Shape, Time, described, optional
from orchestrator.json_types import JsonObject

TAG: Final = "service"


class Build(Shape):
    """Builds of API and workers."""

    api: JsonObject = described("Build of the API.", {"revision": "0.1.0"})
    engine: JsonObject = described("Build of the workers.", {"revision": "0.1.0"})


class VersionRoot(Shape):
    """A version of the API."""

    id: str = described("Name.", "v1.0")
    status: str = described("Always CURRENT.", "CURRENT")
    links: list[Link] = described("`self`.")


class VersionsRoot(Shape):
    """The versions of the API."""

    versions: list[VersionRoot] = described("The versions.")


class Service(Shape):
    """A worker."""

    id: Id
    engine_id: Id
    binary: str = described("Program.", "orchestrator-worker")
    host: str = described("Name.", "check1@web")
    hostname: str = described("Host name.", "web")
    topic: str = described("Queues that it consumes.", "check,observe,bulk")
    report_interval: int = described("Heartbeat interval in seconds.", 20)
    created_at: str = described("Start time.", "2026-01-01T12:00:00.000000")
    updated_at: str = described("Time of the last heartbeat.", "2026-01-01T12:00:20.000000")
    deleted_at: str | None = described("Always null.", None)
    status: Literal["up", "down"] = described("down: the heartbeat is overdue.", "up")


class ServiceList(Shape):
    """The workers."""

    services: list[Service] = described("The workers.")


class VersionOfProject(Shape):
    """Version of this path."""

    version: VersionRoot = described("The version.")


class Health(Shape):
    """Health of the service."""

    status: str = described("ok, degraded (an optional dependency is unavailable) or failed.", "ok")
    parts: JsonObject | None = optional("Status, response time and error of each dependency.")


class SlowStack(Shape):
    """A root stack at work."""

    id: Id
    stack_name: str = described("Name.", "web")
    stack_status: State
    since: Time


class FailureGroup(Shape):
    """Failures with the same classification."""

    kind: str = Field(alias="class", description="Classification.", examples=["quota"])
    count: int = described("Causes.", 3)
    stacks: int = described("Stacks that they belong to.", 2)
    next_step: str = described("Suggested next step.", "delete unused resources")
    examples: list[JsonObject] = described("Some of the causes.", [])


class Overview(Shape):
    """The stacks of a project."""

    counts: dict[str, int] = described("Live root stacks by state.", {"CREATE_COMPLETE": 3})
    slowest: list[SlowStack] = described("Operations in progress that began first.")
    failures: list[FailureGroup] = described("Root causes of failed stacks, the most frequent first.")
    workers: JsonObject | None = described(
        "Worker processes, leases and queues of the installation; null if the policy denies `service:index`.",
        None,
    )


class OverviewShow(Shape):
    """The overview."""

    overview: Overview


OPERATIONS: Final[Operations] = {
    "catalogue.build_info": Operation(TAG, ok("The builds.", Build)),
    "overview.show": Operation(TAG, ok("The overview.", OverviewShow)),
    "versions.root": Operation(
        TAG,
        {300: Response("The versions.", VersionsRoot)},
        secured="none",
        text="Also the response to unsupported versions.",
    ),
    "versions.healthcheck": Operation(
        TAG, {200: Response("The process is alive.", str, "text/plain")}, secured="none"
    ),
    "catalogue.services": Operation(
        TAG, ok("The workers.", ServiceList), refuses=frozenset({503}), text="For administrators."
    ),
    "versions.of_project": Operation(
        TAG, ok("The version.", VersionOfProject), secured="none", path="/v1/{project_id}"
    ),
    "health.live": Operation(TAG, ok("The process is alive.", Health), secured="none"),
    "health.ready": Operation(
        TAG,
        {200: Response("Ready for requests.", Health), 503: Response("Not ready.", Health)},
        secured="none",
    ),
    "metrics.show": Operation(
        TAG, {200: Response("Metrics in Prometheus' text format.", str, "text/plain")}, secured="none"
    ),
    "openapi.document": Operation(TAG, ok("This document.", JsonObject), secured="none"),
    "openapi.page": Operation(TAG, {200: Response("A page.", str, "text/html")}, secured="none"),
}
