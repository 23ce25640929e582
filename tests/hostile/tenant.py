"""A tenant of an installation: requests over HTTP in its own project."""

from __future__ import annotations

from itertools import count
from typing import Any

import httpx

from tests.e2e.running import eventually

NUMBERS = count(1)


class Tenant:
    """Requests of a tenant."""

    def __init__(self, url: str, project: str | None = None) -> None:
        self.project = project or f"tenant{next(NUMBERS)}"
        self.client = httpx.Client(base_url=f"{url}/v1/{self.project}", timeout=60.0, follow_redirects=True)

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def create(self, name: str, resources: dict[str, Any], **sections: Any) -> None:
        """Create a stack; return when it is complete."""
        template = {"heat_template_version": "2021-04-16", "resources": resources, **sections}
        answer = self.client.post("/stacks", json={"stack_name": name, "template": template})
        assert answer.status_code == 201, answer.text
        eventually(lambda: self.status(name) == "CREATE_COMPLETE", 60)

    def status(self, name: str) -> str:
        """Return the status of a stack."""
        shown = self.client.get(f"/stacks/{name}?resolve_outputs=false")
        status: str = shown.json()["stack"]["stack_status"]
        return status

    def output(self, name: str, key: str) -> Any:
        """Return the value of an output."""
        place = self.client.get(f"/stacks/{name}?resolve_outputs=false").json()["stack"]["links"][0]["href"]
        return self.client.get(f"{place}/outputs/{key}").json()["output"]["output_value"]
