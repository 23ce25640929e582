"""The services of the cloud: those in the caller's catalog, or in workers, all."""

from __future__ import annotations

from orchestrator.config import Settings
from orchestrator.resources.endpoint_types import Offers, canonical, every_service, no_services
from orchestrator.security.caller import Caller


def services_of_caller(settings: Settings, caller: Caller) -> Offers:
    """Return whether the catalog of the caller's token has a service in this region.

    A caller without a token of Keystone, such as a resource credential, has no catalog: the services answer
    for themselves.
    """
    if settings.auth != "keystone" or caller.login is None:
        return services_of_workers(settings)
    region = settings.region_name
    offered = {canonical(service) for service, place in caller.login.endpoints if place == region}
    return lambda endpoint_type: canonical(endpoint_type) in offered


def services_of_workers(settings: Settings) -> Offers:
    """Return whether there is a cloud; which services it has was checked when the stack was accepted."""
    return every_service if settings.auth == "keystone" else no_services
