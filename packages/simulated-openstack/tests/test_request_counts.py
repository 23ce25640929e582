"""The counts of the requests to the simulated cloud."""

from __future__ import annotations

import asyncio

import orjson

from simulated_openstack.cloud import SimulatedCloud
from simulated_openstack.http import Request
from simulated_openstack.request_counts import PATH


def test_requests_are_counted_by_service_method_and_path() -> None:
    async def counted() -> bytes:
        cloud = SimulatedCloud()
        server = "/v2.1/servers/0f9d4e1c-3b1a-4c59-9c8e-2f1f6a7b8c9d"
        for method, path in (("GET", server), ("GET", f"{server}?x=1"), ("DELETE", server)):
            await cloud.answer("nova", Request(method, path))
        response = await cloud.answer("keystone", Request("GET", PATH))
        assert response is not None
        return response.content

    assert orjson.loads(asyncio.run(counted()))["requests"] == [
        {"service": "nova", "method": "DELETE", "path": "/v2.1/servers/{id}", "count": 1},
        {"service": "nova", "method": "GET", "path": "/v2.1/servers/{id}", "count": 2},
    ]
