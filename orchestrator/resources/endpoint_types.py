"""Service types of Keystone's catalog, and whether a cloud offers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

# Whether the cloud has an endpoint of a service type.
Offers = Callable[[str], bool]

# Other names of a service type in catalogs, with the name that Heat uses.
_CANONICAL: Final = {
    "alarm": "alarming",
    "block-storage": "volumev3",
    "block-store": "volumev3",
    "container-infrastructure-management": "container-infra",
    "message": "messaging",
    "shared-file-system": "sharev2",
    "workflow": "workflowv2",
}


def canonical(endpoint_type: str) -> str:
    """Return Heat's name of a service type: `volumev3` for `block-storage`."""
    return _CANONICAL.get(endpoint_type, endpoint_type)


def no_services(endpoint_type: str) -> bool:  # noqa: ARG001 - see `Offers`
    """Return False: there is no cloud."""
    return False


def every_service(endpoint_type: str) -> bool:  # noqa: ARG001 - see `Offers`
    """Return True: the catalog is not known here, and the service itself answers."""
    return True
