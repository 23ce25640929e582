"""Octavia's API.

While a load balancer is being changed (PENDING_CREATE, PENDING_UPDATE, PENDING_DELETE), Octavia refuses every
other change of it and of its listeners, pools and other parts: 409, "immutable". A change is carried out
completely or refused completely, so that a refused request is sent again later.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from orchestrator.clients.openstack.object_collections import Collection, Collections
from orchestrator.clients.openstack.transport import Answer
from orchestrator.errors import ProviderChanging, ProviderConflict, ProviderError
from orchestrator.json_types import JsonMapping

LOAD_BALANCERS: Final = Collection("/loadbalancers", "loadbalancer", "loadbalancers")
LISTENERS: Final = Collection("/listeners", "listener", "listeners")
POOLS: Final = Collection("/pools", "pool", "pools")
MEMBERS: Final = Collection("/pools/{parent}/members", "member", "members")
HEALTH_MONITORS: Final = Collection("/healthmonitors", "healthmonitor", "healthmonitors")
L7_POLICIES: Final = Collection("/l7policies", "l7policy", "l7policies")
L7_RULES: Final = Collection("/l7policies/{parent}/rules", "rule", "rules")
FLAVORS: Final = Collection("/flavors", "flavor", "flavors")
FLAVOR_PROFILES: Final = Collection("/flavorprofiles", "flavorprofile", "flavorprofiles")
ZONES: Final = Collection(
    "/availabilityzones", "availability_zone", "availability_zones", id_key="name", unnamed=True
)
ZONE_PROFILES: Final = Collection(
    "/availabilityzoneprofiles", "availability_zone_profile", "availability_zone_profiles"
)

IMMUTABLE_SECONDS: Final = 1.0  # until a refused change is sent again
# "Load Balancer X is immutable and cannot be updated.", "Invalid state X of loadbalancer resource Y"
_IMMUTABLE: Final = re.compile(r"is immutable|Invalid state \S+ of loadbalancer")
_LOAD_BALANCER: Final = re.compile(r"(?:Load Balancer|loadbalancer resource) ([0-9a-fA-F-]{32,36})")
QUOTA_SETS: Final = Collection("/quotas", "quota", "")


class LoadBalancing(Collections):
    """Octavia, called as a credential."""

    service: ClassVar[str] = "octavia"
    service_type: ClassVar[str] = "load-balancer"
    root: ClassVar[str] = "/lbaas"
    complete_lists: ClassVar[str | None] = ""
    project_filter: ClassVar[str] = "project_id"

    def exchange(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        """Send a request; return the answer.

        Raises:
            ProviderChanging: another change of the load balancer is in progress.
            ProviderError: the load balancer is in error, and accepts no change.
        """
        try:
            return super().exchange(method, path, body, **options)
        except ProviderConflict as error:
            if not _IMMUTABLE.search(str(error)):
                raise
            self._require_usable(error)
            raise ProviderChanging(str(error), error.kind, retry_after=IMMUTABLE_SECONDS) from error

    def remove_with_parts(self, load_balancer_id: str) -> bool:
        """Delete a load balancer with its listeners and pools. Return whether it existed."""
        return self.delete(LOAD_BALANCERS.of(load_balancer_id), {"cascade": "true"})

    def set_members(self, pool_id: str, members: Sequence[JsonMapping]) -> None:
        """Replace all members of a pool, as a single change."""
        self.put(MEMBERS.of(parent=pool_id), {MEMBERS.plural: list(members)})

    def _require_usable(self, refusal: ProviderConflict) -> None:
        """Report the refusal as final if the load balancer that it names is in error."""
        named = _LOAD_BALANCER.search(str(refusal))
        found = None if named is None else self.find(LOAD_BALANCERS, named[1])
        if found is not None and found.get("provisioning_status") == "ERROR":
            message = f"{refusal}: the provisioning status of the load balancer is ERROR"
            raise ProviderError(message, refusal.kind) from refusal
