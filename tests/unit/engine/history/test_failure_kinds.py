"""The parts of a failure reason: its class, its owner, the request id, the suggested action."""

from __future__ import annotations

import pytest

from orchestrator.engine.history.failure_kinds import NEXT, SIGNS, classify

UUID = "req-4041d2a4-4095-4e03-a409-5e0b404c5500"


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("ForbiddenException: 403: Quota exceeded for cores: Requested 4", "quota"),
        ("ResourceInError: resources.one: Went to ERROR due to \"No valid host was found\"", "capacity"),
        ("schedule allocate volume:Could not find any available weighted backend.", "capacity"),
        ("Unauthorized: The request you have made requires authentication. (HTTP 401)", "auth"),
        ("Conflict: 409: Port p is in use", "conflict"),
        ("CREATE aborted (Stack CREATE timed out)", "timeout"),
        ("ProviderError: the service answered 503", "busy"),
        ("NotFound: The Image (x) could not be found.", "not-found"),
        ("Error: Property error: flavor: must be one of a, b", "invalid"),
        ("ValueError: Test Resource failed x", "other"),
        (f"Error: it broke ({UUID})", "other"),  # the digits of an id mean nothing
    ],
)  # fmt: skip
def test_a_reason_has_a_class_and_each_class_a_next_step(reason: str, word: str) -> None:
    assert classify(reason).category == word
    assert classify(reason).next_step == NEXT[word]


def test_the_error_the_service_and_the_request_are_read_out_of_it() -> None:
    result = classify(f"BadRequest: Invalid key_name (HTTP 400 from nova) (Request-ID: {UUID})")
    assert (result.error_type, result.request_id, result.category) == ("BadRequest", UUID, "invalid")
    assert result.service == "nova"
    assert classify("Conflict: in use (HTTP 409)").service is None
    assert classify("nothing of the kind").request_id is None


def test_every_failure_class_has_a_suggested_action() -> None:
    assert {keyword for keyword, _ in SIGNS} | {"other"} == set(NEXT)
