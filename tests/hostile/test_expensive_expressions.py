"""Expensive `yaql` expressions: the expressions of another tenant do not wait for their end."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from tests.hostile import attacks
from tests.hostile.tenant import Tenant
from tests.patience import pause

REQUESTS = 2


def test_expressions_of_another_tenant_do_not_wait(tenant: Tenant) -> None:
    other = Tenant(str(tenant.client.base_url).partition("/v1/")[0])
    cheap = {"yaql": {"expression": "$.data + 1", "data": time.monotonic_ns()}}
    outputs = {"expensive": {"value": attacks.expensive(time.monotonic_ns())}}
    tenant.create("s", {"a": {"type": "OS::Heat::None"}}, outputs=outputs)
    other.create("s", {"a": {"type": "OS::Heat::None"}}, outputs={"cheap": {"value": cheap}})
    with ThreadPoolExecutor(REQUESTS) as pool:
        hostile = [pool.submit(tenant.client.get, "/stacks/s") for _ in range(REQUESTS)]
        pause(0.5)  # until the expressions are being evaluated
        assert other.output("s", "cheap") == cheap["yaql"]["data"] + 1
        assert not any(request.done() for request in hostile)
        for request in hostile:
            [output] = request.result().json()["stack"]["outputs"]
            assert "took too much time" in output["output_error"]
    other.close()
