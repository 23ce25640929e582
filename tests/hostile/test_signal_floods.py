"""Large signals to a handle: the stored data and the answers are limited."""

from __future__ import annotations

import httpx

from orchestrator.resources.builtin.wait_handle_base import MAX_BYTES
from tests.hostile.tenant import Tenant

KB = 1024
HANDLE = {"type": "AWS::CloudFormation::WaitConditionHandle"}


def test_large_signals_fill_a_handle_to_its_limit_and_have_short_answers(tenant: Tenant) -> None:
    tenant.create("s", {"handle": HANDLE}, outputs={"url": {"value": {"get_resource": "handle"}}})
    url = tenant.output("s", "url")

    def send(id_: int, data: str) -> httpx.Response:
        body = {"Status": "SUCCESS", "Reason": "done", "Data": data, "UniqueId": str(id_)}
        return httpx.put(url, json=body, timeout=30)

    answers = []
    while not answers or answers[-1].is_success:
        answers.append(send(len(answers), "x" * 100 * KB))
        assert len(answers) < 100
    assert answers[-1].status_code == 400
    assert f"more than {MAX_BYTES // KB} KiB" in answers[-1].text
    assert max(len(answer.content) for answer in answers) < 110 * KB
    assert send(0, "short").is_success  # in place of a large signal
