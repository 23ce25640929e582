"""The work of a stack as a plain script: threads that send requests, and a loop that lists the servers."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

from orchestrator.clients.keystone.cloud_session import Cloud

LIST_SECONDS: Final = 0.5
LIMIT_SECONDS: Final = 1_800.0
MICROVERSION: Final = {"OpenStack-API-Version": "compute 2.90"}


@dataclass
class PlainScript:
    """Ports and servers, created and deleted with a number of threads."""

    cloud: Cloud
    image_id: str
    flavor_id: str
    network_id: str
    prefix: str
    servers: list[str] = field(default_factory=list)
    ports: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Log in."""
        session = self.cloud.session()
        token = session.get_token()
        self._urls = {
            kind: session.get_endpoint(service_type=kind, interface="public").rstrip("/")
            for kind in ("compute", "network")
        }
        if not self._urls["network"].endswith("/v2.0"):
            self._urls["network"] += "/v2.0"
        headers = {"X-Auth-Token": token, **MICROVERSION}
        self._client = httpx.Client(
            headers=headers, timeout=300.0, trust_env=False, limits=httpx.Limits(max_connections=None)
        )

    def create(self, count: int, threads: int) -> float:
        """Create ports with a server each; return the seconds until all servers are active."""
        began = time.monotonic()
        with ThreadPoolExecutor(threads) as pool:
            pairs = list(pool.map(self._create, range(count)))
        self.ports, self.servers = [port for port, _ in pairs], [server for _, server in pairs]
        self._until(lambda found: all(found.get(id_) == "ACTIVE" for id_ in self.servers))
        return time.monotonic() - began

    def delete(self, threads: int) -> float:
        """Delete the servers, and then the ports; return the seconds."""
        began = time.monotonic()
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda id_: self._send("DELETE", "compute", f"/servers/{id_}"), self.servers))
            self._until(lambda found: not found.keys() & set(self.servers))
            list(pool.map(lambda id_: self._send("DELETE", "network", f"/ports/{id_}"), self.ports))
        self.servers, self.ports = [], []
        return time.monotonic() - began

    def _create(self, number: int) -> tuple[str, str]:
        name = f"{self.prefix}-{number}"
        port = self._send(
            "POST", "network", "/ports", {"port": {"name": name, "network_id": self.network_id}}
        )["port"]["id"]
        server = {
            "name": name,
            "imageRef": self.image_id,
            "flavorRef": self.flavor_id,
            "networks": [{"port": port}],
        }
        return port, self._send("POST", "compute", "/servers", {"server": server})["server"]["id"]

    def _until(self, condition: Any) -> None:
        until = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < until:
            listed = self._send("GET", "compute", f"/servers/detail?limit=1000&name={self.prefix}")["servers"]
            found = {server["id"]: server["status"] for server in listed}
            if "ERROR" in found.values():
                raise RuntimeError("a server is in error")
            if condition(found):
                return
            time.sleep(LIST_SECONDS)
        raise RuntimeError("the servers do not reach their status")

    def _send(self, method: str, service: str, path: str, body: Any = None) -> Any:
        answer = self._client.request(method, f"{self._urls[service]}{path}", json=body)
        answer.raise_for_status()
        return answer.json() if answer.content else None
