"""The API as the command line uses it: an object for each collection, over a shared connection."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from orchestrator.cli.client.connection import Connection
from orchestrator.cli.client.diagnosis import Diagnosis
from orchestrator.cli.client.events import Events, Webhooks
from orchestrator.cli.client.history import Revisions, Snapshots
from orchestrator.cli.client.observation import ObservationPolicies, Repairs
from orchestrator.cli.client.observations import Observations
from orchestrator.cli.client.resources import Resources, ResourceTypes
from orchestrator.cli.client.stacks import Stacks


class Client:
    """The collections of a project."""

    def __init__(
        self,
        url: str,
        project: str,
        token: str | None = None,
        *,
        login: tuple[str, str] | None = None,
        patience_seconds: float = 1.0,
    ) -> None:
        """Connect as `Connection` describes."""
        self.connection = Connection(url, project, token, login=login, patience_seconds=patience_seconds)
        self.stacks = Stacks(self.connection)
        self.resources = Resources(self.connection)
        self.events = Events(self.connection)
        self.revisions = Revisions(self.connection)
        self.snapshots = Snapshots(self.connection)
        self.diagnosis = Diagnosis(self.connection)
        self.resource_types = ResourceTypes(self.connection)
        self.webhooks = Webhooks(self.connection)
        self.repairs = Repairs(self.connection)
        self.observation_policies = ObservationPolicies(self.connection)
        self.observations = Observations(self.connection)

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection."""
        self.connection.close()
