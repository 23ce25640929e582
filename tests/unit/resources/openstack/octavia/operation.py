"""A resource of Octavia and its cloud, for unit tests."""

from __future__ import annotations

from orchestrator.clients.openstack.networking.load_balancing import LOAD_BALANCERS
from tests.unit.resources.openstack.neutron.operation import Operation as NeutronOperation

LB = "11111111-1111-1111-1111-111111111111"


class Operation(NeutronOperation):
    """An operation on a resource of Octavia."""

    root = "/lbaas"

    def refuses(self, method: str, target: str, text: str, status: int = 409) -> None:
        """Refuse requests as Octavia does."""
        body = {"faultcode": "Client", "faultstring": text, "debuginfo": None}
        self.script.answers(method, target, body, status=status)

    def is_immutable(self, status: str) -> None:
        """Refuse all changes while the load balancer has a status."""
        text = f"Load Balancer {LB} is immutable and cannot be updated."
        for method in ("POST", "PUT", "DELETE"):
            self.refuses(method, "/lbaas/.*", text)
        self.has(LOAD_BALANCERS, {"id": LB, "provisioning_status": status})
