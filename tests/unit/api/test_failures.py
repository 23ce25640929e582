"""The service that reported a failure."""

from __future__ import annotations

import pytest

from api.response.failures import reporting_service
from orchestrator.engine.history.failure_kinds import classify
from orchestrator.resources.registry import load_registry

IN_ERROR = 'ResourceInError: resources.it: Went to status ERROR due to "Unknown"'


@pytest.mark.parametrize(
    ("type_name", "reason", "service"),
    [
        ("OS::Nova::Server", "Conflict: resources.it: in use (HTTP 409 from neutron)", "neutron"),
        ("OS::Nova::Server", IN_ERROR, "nova"),
        ("OS::Cinder::Volume", IN_ERROR, "cinder"),
        ("OS::Nova::Server", "CREATE aborted (Stack CREATE timed out)", None),
        ("OS::Heat::TestResource", IN_ERROR, None),
        ("Of::A::Plugin::That::Is::Gone", IN_ERROR, None),
        (None, IN_ERROR, None),
    ],
)
def test_the_service_is_that_of_the_answer_or_of_the_type_of_the_object(
    type_name: str | None, reason: str, service: str | None
) -> None:
    assert reporting_service(load_registry(), type_name, classify(reason)) == service
