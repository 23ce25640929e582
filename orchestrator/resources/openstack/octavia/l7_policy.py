"""OS::Octavia::L7Policy."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.clients.openstack.networking.load_balancing import L7_POLICIES
from orchestrator.resources.base import Attribute, Property
from orchestrator.resources.openstack.collection_type import Field
from orchestrator.resources.openstack.octavia.base import ADMIN_STATE_UP, NAME, LoadBalancerPart
from orchestrator.resources.openstack.property_rules import PropertyRule, Refused, Required, among
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Resolve

NO_TARGET = "Properties redirect_pool and redirect_url are not required when action type is set to REJECT."
# The property that an action needs.
TARGETS = {"REDIRECT_TO_POOL": "redirect_pool", "REDIRECT_TO_URL": "redirect_url"}


def _rules_of(action: str, target: str) -> Iterator[PropertyRule]:
    """Yield the rules that the target is that of the action."""
    others = [other for other in TARGETS if other != action]
    message = f"{target} property should only be specified for action with value {action}."
    yield Refused(message, lambda p: p.get(target) and p.get("action") in others, only_written=True)
    missing = f"Property {target} is required when action type is set to {action}."
    yield Required(target, missing, among("action", (action,)))


class L7Policy(LoadBalancerPart):
    """What a listener does with requests to which all rules of the policy apply."""

    name = "OS::Octavia::L7Policy"
    collection = L7_POLICIES
    fields = {
        "listener": "listener_id",
        "redirect_pool": "redirect_pool_id",
        # Octavia numbers the policies of a listener anew.
        "position": Field(to_api=lambda value: value if value is None else int(value), reported=False),
    }
    translation = (Resolve(("listener",), "octavia.listener"), Resolve(("redirect_pool",), "octavia.pool"))
    rules = (
        Refused(
            NO_TARGET,
            lambda p: p.get("action") == "REJECT" and any(map(p.get, TARGETS.values())),
            only_written=True,
        ),
        *_rules_of("REDIRECT_TO_POOL", "redirect_pool"),
        *_rules_of("REDIRECT_TO_URL", "redirect_url"),
    )
    properties = {
        "name": NAME,
        "description": Property("string", "Description of the policy.", update_allowed=True),
        "admin_state_up": ADMIN_STATE_UP,
        "action": Property(
            "string",
            "What is done with the requests.",
            required=True,
            update_allowed=True,
            constraints=(AllowedValues(("REJECT", *TARGETS)),),
        ),
        "redirect_pool": Property(
            "string",
            "Name or id of the pool of REDIRECT_TO_POOL.",
            update_allowed=True,
            constraints=(Custom("octavia.pool"),),
        ),
        "redirect_url": Property("string", "URL of REDIRECT_TO_URL.", update_allowed=True),
        "position": Property(
            "number",
            "Position among the policies of the listener, from 1. Default: the last.",
            update_allowed=True,
            constraints=(Range(min=1),),
        ),
        "listener": Property(
            "string",
            "Name or id of the listener.",
            required=True,
            constraints=(Custom("octavia.listener"),),
        ),
    }
    attributes = {"rules": Attribute("Rules of the policy.", type="list", live=True)}
