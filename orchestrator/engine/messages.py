"""What the core asks the shell to send once the transaction is committed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckMessage:
    """ "Look at this node": all that a message says. `label` and `root` are for people who watch."""

    node_id: int
    traversal: int
    queue: str
    label: str = ""  # the resource's name
    root: str = ""  # the root stack's uuid: Celery's root_id


@dataclass(frozen=True, slots=True)
class SignalMessage:
    """ "This resource has signals to take in": the other thing a message may say."""

    resource_id: int
    label: str = ""
    root: str = ""


Message = CheckMessage | SignalMessage
