"""The parts of the cloud that all services share, and the seconds that changes of state take."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from simulated_openstack.faults import Faults
from simulated_openstack.schedule import Schedule
from simulated_openstack.state import State

# Of `Delays`, in its order.
TYPICAL: Final = (0.05, 3.0, 1.5, 1.0, 0.7, 0.7, 0.7, 0.5, 0.5, 2.0, 0.5, 0.5, 0.5)


@dataclass(frozen=True)
class Delays:
    """Seconds that changes of state take, and that every request takes."""

    request: float = 0.0
    server_build: float = 0.0
    server_action: float = 0.0
    server_delete: float = 0.0
    volume_create: float = 0.0
    volume_action: float = 0.0
    volume_delete: float = 0.0
    image: float = 0.0
    order: float = 0.0
    load_balancer_create: float = 0.0
    load_balancer_change: float = 0.0
    dns: float = 0.0
    execution: float = 0.0

    @classmethod
    def typical(cls, factor: float = 1.0) -> Delays:
        """Return the delays of a small real cloud, times `factor`."""
        return cls(*(factor * seconds for seconds in TYPICAL))


@dataclass(eq=False)
class Environment:
    """The objects of all services, their pending changes, the faults and the delays."""

    state: State
    schedule: Schedule
    faults: Faults
    delays: Delays


def delays_from(text: str) -> Delays:
    """Return delays from `typical`, `none`, or a list such as `server_build=2,request=0.1`.

    Raises:
        ValueError: the text is none of these.
    """
    if text in {"none", "typical"}:
        return Delays() if text == "none" else Delays.typical()
    values = dict(part.split("=", 1) for part in text.split(","))
    unknown = values.keys() - {item.name for item in fields(Delays)}
    if unknown:
        raise ValueError(f"unknown delay: {', '.join(sorted(unknown))}")
    return Delays(**{name: float(value) for name, value in values.items()})
