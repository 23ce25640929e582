"""OS::Octavia::L7Policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.clients.openstack.networking.load_balancing import L7_POLICIES
from orchestrator.resources.base import Attribute, Fault, Property, Value
from orchestrator.resources.openstack.collection_type import Field
from orchestrator.resources.openstack.octavia.base import ADMIN_STATE_UP, NAME, LoadBalancerPart
from orchestrator.resources.openstack.written_values import is_unset
from orchestrator.schema.constraints import AllowedValues, Custom, Range
from orchestrator.schema.translation import Resolve
from orchestrator.template.definition import ResourceDefinition

NO_TARGET = "Properties redirect_pool and redirect_url are not required when action type is set to REJECT."
# The property that an action needs.
TARGETS = {"REDIRECT_TO_POOL": "redirect_pool", "REDIRECT_TO_URL": "redirect_url"}


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

    def validate_among(
        self, name: str, properties: Mapping[str, Value], resources: Mapping[str, ResourceDefinition]
    ) -> Sequence[Fault]:
        """The target has to fit the action."""
        action, definition = properties.get("action"), resources.get(name)
        given = [target for target in TARGETS.values() if properties.get(target) is not None]
        if action == "REJECT" and given:
            return (Fault(NO_TARGET, alone=True),)
        for other, target in TARGETS.items():
            if action in TARGETS and other != action and target in given:
                text = f"{target} property should only be specified for action with value {other}."
                return (Fault(text, alone=True),)
            if other == action and is_unset(definition, target):
                text = f"Property {target} is required when action type is set to {action}."
                return (Fault(text, alone=True),)
        return ()
