"""OS::Aodh::CombinationAlarm, which Aodh no longer has."""

from __future__ import annotations

from orchestrator.resources.builtin.retired import Retired


class CombinationAlarm(Retired):
    """A placeholder, so that old stacks can be deleted."""

    name = "OS::Aodh::CombinationAlarm"
    endpoint_type = "alarming"
    support_version = "9.0.0"
    support_message = (
        "OS::Aodh::CombinationAlarm is deprecated and has been removed from Aodh, "
        "use OS::Aodh::CompositeAlarm instead."
    )
