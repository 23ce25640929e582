"""The look-ups of a resource: the finder of its type's `Resolve` rules (`schema/translation.py`).

Afterwards a property has the same value, an id, whether the template has the name or the id.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from orchestrator.clients.keystone.cloud_session import Cloud
from orchestrator.clients.openstack.cloud import CALL_SECONDS, OpenStack
from orchestrator.clients.openstack.finding import is_id
from orchestrator.clients.provider_calls import ProviderCalls
from orchestrator.lookups.cache import RECENT, Key, LookupCache
from orchestrator.lookups.kinds import LookupFault, can_look_up, look_up

NO_IDS: Final = frozenset(
    {"nova.flavor", "nova.host", "nova.keypair", "keystone.region", "octavia.availabilityzone"}
)


class RecentFinder:
    """Replaces names by ids that were looked up recently, without a request; other values stay.

    For a preview, after its validation.
    """

    def __init__(self, project_id: str, region: str, recent: LookupCache = RECENT) -> None:
        """Take the scope of the names."""
        self._project_id, self._region, self._recent = project_id, region, recent

    def __call__(self, finder: str, entity: str, value: Any) -> Any:
        """Return the id of the object with this name if it is known, otherwise the value."""
        key = _key(self._project_id, self._region, finder, entity, value)
        return value if key is None else self._recent.get(key) or value


class CloudFinder:
    """Replaces names by ids, as a credential."""

    def __init__(
        self,
        cloud: Cloud,
        project_id: str,
        *,
        owner: str = "",
        recent: LookupCache = RECENT,
        deadline_seconds: float = CALL_SECONDS,
        find: Callable[[OpenStack, str, str], str] = look_up,
        calls: ProviderCalls | None = None,
    ) -> None:
        """Look nothing up yet; `owner` is the tree of stacks that the requests are for."""
        self._cloud, self._project_id, self._owner, self._recent = cloud, project_id, owner, recent
        self._seconds, self._look_up, self._calls = deadline_seconds, find, calls

    def __call__(self, finder: str, entity: str, value: Any) -> Any:
        """Return the id of the object with this name or id; `entity` refines the kind `finder`, if set.

        Raises:
            LookupFault: there is none, or it is ambiguous; the message is that of the constraint.
            ProviderError: the service did not answer, or refused.
        """
        key = _key(self._project_id, self._cloud.region, finder, entity, value)
        if key is None:
            return value
        if (known := self._recent.get(key)) is not None:  # of most resources in a stack
            return known
        cloud = OpenStack(self._cloud, self._seconds, owner=self._owner, calls=self._calls)
        find = partial(self._look_up, cloud, key.kind, key.value)
        try:
            return self._recent.get_or_find(key, find, self._seconds)
        except LookupFault as fault:
            raise LookupFault(f"Error validating value '{value}': {fault}") from fault


def _key(project_id: str, region: str, finder: str, entity: str, value: object) -> Key | None:
    """Return the key of a look-up, None if nothing is to be looked up: a value in the form of an id is taken
    as an id, for most are ids of other resources of the stack.
    """
    if not isinstance(value, str | int) or isinstance(value, bool):
        return None
    kind = f"{finder}.{entity}" if entity else finder
    if (kind not in NO_IDS and is_id(str(value))) or (entity and not can_look_up(kind)):
        return None
    return Key(project_id, region, kind, str(value))
