"""The simulated cloud: its services, its state, and the way of a request through them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from simulated_openstack import request_counts
from simulated_openstack.aodh.service import Aodh
from simulated_openstack.barbican.service import Barbican
from simulated_openstack.cinder.service import Cinder
from simulated_openstack.contents import REGION, Contents, ensure_contents, new_password
from simulated_openstack.designate.service import Designate
from simulated_openstack.environment import Delays, Environment
from simulated_openstack.faults import ApiFault, Faults
from simulated_openstack.glance.service import Glance
from simulated_openstack.http import Request, Response
from simulated_openstack.keystone.service import Keystone
from simulated_openstack.mistral.service import Mistral
from simulated_openstack.neutron.service import Neutron
from simulated_openstack.nova.service import Nova
from simulated_openstack.octavia.service import Octavia
from simulated_openstack.request_counts import RequestCounts
from simulated_openstack.schedule import Schedule
from simulated_openstack.server import LoopThread, Server
from simulated_openstack.service import Service
from simulated_openstack.state import State
from simulated_openstack.storage import Storage
from simulated_openstack.swift.service import Swift
from simulated_openstack.web_pages import page_refusal

LOG: Final = logging.getLogger(__name__)


class SimulatedCloud(Environment):
    """All services in one process. Handlers run in turn, in the event loop."""

    def __init__(
        self,
        *,
        delays: Delays | None = None,
        storage: Storage | None = None,
        faults_file: Path | None = None,
        password: str | None = None,
        orchestration_url: str = "",
    ) -> None:
        """Read the state from the storage, by default none; a new cloud gets its objects when it listens.

        `password` is that of all its first users, by default a random one. With `orchestration_url`, the
        address of a Heat, the catalog has its services.
        """
        state = State(storage)
        super().__init__(state, Schedule(state), Faults(faults_file), delays or Delays())
        self.password = password or new_password()
        self.orchestration_url = orchestration_url.rstrip("/")
        self.requests = RequestCounts()
        self.keystone = keystone = Keystone(self)
        self.glance = Glance(self, keystone)
        self.neutron = Neutron(self, keystone)
        self.cinder = Cinder(self, keystone, self.glance)
        self.nova = Nova(self, keystone, self.glance, self.neutron, self.cinder)
        self.octavia = Octavia(self, keystone, self.neutron)
        self.aodh = Aodh(self, keystone)
        self.swift = Swift(self, keystone)
        self.barbican = Barbican(self, keystone)
        self.designate = Designate(self, keystone)
        self.mistral = Mistral(self, keystone)
        compared = (self.keystone, self.glance, self.nova, self.neutron, self.cinder, self.octavia)
        # without a comparison with real services
        published = (self.aodh, self.swift, self.barbican, self.designate, self.mistral)
        self.services: dict[str, Service] = {service.name: service for service in (*compared, *published)}
        self._server = Server(self.answer)

    @property
    def auth_url(self) -> str:
        """Keystone's URL for clients."""
        return f"{self.keystone.base}/v3"

    def variables(self, user: str) -> dict[str, str]:
        """Return the variables with which OpenStack's clients act as a first user in the project `demo`."""
        return {
            "OS_AUTH_URL": self.auth_url,
            "OS_USERNAME": user,
            "OS_PASSWORD": self.password,
            "OS_PROJECT_NAME": "demo",
            "OS_USER_DOMAIN_NAME": "Default",
            "OS_PROJECT_DOMAIN_NAME": "Default",
            "OS_REGION_NAME": REGION,
        }

    async def listen(self, first_port: int = 0) -> None:
        """Listen on a port for each service: `first_port` and the following ones, or free ports for 0."""
        for service in self.services.values():
            port = first_port + service.port_offset if first_port else 0
            service.port = await self._server.listen(service.name, port)
        contents = Contents(
            keystone=self.keystone,
            glance=self.glance,
            nova=self.nova,
            neutron=self.neutron,
            cinder=self.cinder,
            services=self.services,
            password=self.password,
            orchestration_url=self.orchestration_url,
        )
        ensure_contents(contents)
        self.state.commit()

    async def close(self) -> None:
        """Stop listening, and close the state."""
        await self._server.close()
        self.state.close()

    async def answer(self, name: str, request: Request) -> Response | None:
        """Return the answer to a request, None to close its connection."""
        if (refusal := page_refusal(request)) is not None:
            return refusal
        if request.path == request_counts.PATH:
            return self.requests.response
        self.requests.record(name, request)
        fault = self.faults.api(name, request.method, request.path)
        pause = self.delays.request + (fault.delay if fault else 0.0)
        if pause:
            await asyncio.sleep(pause)
        if fault is None or fault.after or not fault.replaces_answer:
            response = self.handle(name, request)
            if fault is None or not fault.replaces_answer:
                return response if fault is None or fault.truncate is None else _cut(response, fault.truncate)
        return None if fault.drop else _injected(fault)

    def handle(self, name: str, request: Request) -> Response:
        """Carry out a request, and keep its effects."""
        try:
            self.schedule.run_due()
            response = self.services[name].answer(request)
        except Exception:
            LOG.exception("simulated %s: %s %s", name, request.method, request.target)
            body = {"error": {"code": 500, "title": "Internal Server Error", "message": "see the log"}}
            response = Response(500, body)
        self.state.commit()
        return response


@contextmanager
def running_cloud(first_port: int = 0, **options: Any) -> Iterator[SimulatedCloud]:
    """Run a cloud in a thread of this process, for tests; `options` are those of `SimulatedCloud`."""
    thread = LoopThread()
    cloud = SimulatedCloud(**options)
    thread.run(cloud.listen(first_port))
    try:
        yield cloud
    finally:
        thread.run(cloud.close())
        thread.stop()


def _cut(response: Response, share: float) -> Response:
    """Return a list as if its end were missing."""
    if response.status != 200 or not isinstance(response.body, dict):
        return response
    body = {
        key: value[: int(len(value) * share)] if isinstance(value, list) else value
        for key, value in response.body.items()
        if not key.endswith("_links")
    }
    return Response(response.status, body, response.headers)


def _injected(fault: ApiFault) -> Response:
    error = {"code": fault.status, "title": "Injected", "message": "injected fault"}
    return Response(fault.status or 500, {"error": error}, dict(fault.headers))
