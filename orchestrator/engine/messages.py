"""Messages that the core returns, to be sent after the commit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CheckMessage:
    """Request to visit a node. `label` and `root` are only for monitoring. `shared_list` is the list that
    shows the progress of an open operation: nodes with the same list may share a task (operations/adr/0022).
    """

    node_id: int
    traversal: int
    queue: str
    label: str = ""  # the resource's name
    root: str = ""  # the root stack's uuid: Celery's root_id
    shared_list: str = ""


@dataclass(frozen=True, slots=True)
class SignalMessage:
    """Request to process the pending signals of a resource."""

    resource_id: int
    label: str = ""
    root: str = ""


@dataclass(frozen=True, slots=True)
class ObservationMessage:
    """Request to observe a resource beside the operations of its stack."""

    resource_id: int
    label: str = ""
    root: str = ""


@dataclass(frozen=True, slots=True)
class RoundMessage:
    """Request to observe the resources of a group (operations/adr/0017)."""

    group_id: int
    label: str = ""
    project: str = ""

    @property
    def root(self) -> str:
        """In place of a root stack: the rounds of a project take turns with its stacks."""
        return f"observation of {self.project}"


Message = CheckMessage | SignalMessage | ObservationMessage | RoundMessage
