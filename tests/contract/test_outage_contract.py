"""The contract finds a type that does not report an unreachable provider as such."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from orchestrator.resources.base import Context, Created, Observation
from orchestrator.testing.contract import TypeContract
from orchestrator.testing.operated import Operated
from orchestrator.testing.samples import Sample
from tests.scenarios.fake_cloud import Cloud, Machine


class Honest(Machine):
    """Calls its provider in every verb."""

    def check(self, ctx: Context, physical_id: str) -> None:
        self.cloud.call("check", ctx)

    def is_healthy_after_failure(self, ctx: Context, physical_id: str) -> bool:
        self.cloud.call("health", ctx)
        return True


class Hasty(Honest):
    """Takes an outage for an absent object."""

    def observe(self, ctx: Context, physical_id: str) -> Observation:
        return Observation(exists=False) if self.cloud.busy else super().observe(ctx, physical_id)


class Forgetful(Honest):
    """Finds nothing during an outage."""

    def find(self, ctx: Context, token: str) -> str | None:
        return None if self.cloud.busy else super().find(ctx, token)


class Careless(Honest):
    """Ignores an outage during a delete."""

    def delete(self, ctx: Context, physical_id: str) -> None:
        if not self.cloud.busy:
            super().delete(ctx, physical_id)


class Untranslated(Honest):
    """Raises the errors of its library."""

    def update(
        self, ctx: Context, physical_id: str, props: Mapping[str, Any], changed: frozenset[str]
    ) -> Created:
        if self.cloud.busy:
            raise RuntimeError("HTTP 503")
        return super().update(ctx, physical_id, props, changed)


def operate(kind: type[Honest]) -> Callable[[], Operated]:
    cloud = Cloud()

    @contextmanager
    def outage() -> Iterator[None]:
        cloud.busy = True
        yield
        cloud.busy = False

    return lambda: Operated(kind(cloud), {}, Sample(kind.name, outage=outage))


def check(kind: type[Honest]) -> None:
    TypeContract().test_an_unreachable_provider_is_no_absent_object(operate(kind))


def test_a_type_that_reports_every_outage_passes() -> None:
    check(Honest)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        (Hasty, r"observe \(DELETE\) returned Observation\(exists=False"),
        (Forgetful, "find returned None during an outage"),
        (Careless, "delete returned None during an outage"),
        (Untranslated, "update raised RuntimeError, which does not report an outage: HTTP 503"),
    ],
)
def test_a_type_that_hides_an_outage_does_not_pass(kind: type[Honest], fault: str) -> None:
    with pytest.raises(AssertionError, match=fault):
        check(kind)
