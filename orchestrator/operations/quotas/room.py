"""Whether a project may have more: the check before something is added (store/adr/0007)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.errors import LimitExceeded
from orchestrator.operations.quotas.counts import ProjectCounts
from orchestrator.store import software
from orchestrator.store.access import resource_counts
from orchestrator.store.access.quotas import Limit
from orchestrator.store.connections.database import Database
from orchestrator.store.events import webhooks
from orchestrator.store.stacks import stored_bytes
from orchestrator.store.stacks.root_stacks import count_stacks

Db = Connection[TupleRow]

IN_PROGRESS: Final = 1_000  # requests of a project at a time, in all processes
CLOSE: Final = 0.01  # of a limit: the part that may be used while a count is reused


@dataclass(frozen=True, slots=True)
class Quota:
    """A limit of projects, and the function that counts its rows as a transaction sees them."""

    name: str  # a name of `limits.QUOTAS`
    used: Callable[[Db, str], int]
    refusal: str  # with the limit
    refuses_early: bool = False  # by a count of this process, which a delete makes too high for a while


STACKS: Final = Quota(
    "stacks",
    count_stacks,
    "You have reached the maximum stacks per tenant, {}. Please delete some stacks.",
)
RESOURCES: Final = Quota(
    "resources",
    resource_counts.of_project,
    "You have reached the maximum resources per tenant, {}. Please delete some resources.",
    refuses_early=True,
)
# Contents of revisions, snapshots and software configs, also of deleted stacks until the purge
# (store/adr/0008).
STORED_BYTES: Final = Quota(
    "stored_bytes",
    stored_bytes.of_project,
    "You have reached the maximum stored bytes per tenant, {}: templates, files, environments, snapshots and "
    "software configs, also of earlier revisions and deleted stacks until they are purged.",
)
WEBHOOKS: Final = Quota(
    "webhooks",
    webhooks.count,
    "You have reached the maximum webhooks per tenant, {}.",
)
SOFTWARE_CONFIGS: Final = Quota(
    "software_configs",
    software.count_configs,
    "You have reached the maximum software configs per tenant, {}. Please delete some configs.",
)
SOFTWARE_DEPLOYMENTS: Final = Quota(
    "software_deployments",
    software.count_deployments,
    "You have reached the maximum software deployments per tenant, {}. Please delete some deployments.",
)
LARGE_CONFIGS: Final = Quota(
    "large_value_bytes",
    software.large_bytes,
    "the large software configs of the project have more than {} bytes.",
)


def is_near(*, used: int, added: int, maximum: int) -> bool:
    """Whether requests in progress, each of which adds `added` to the `used` part, could exceed a limit.

    Then the transaction that adds checks the limit under the lock of its project.
    """
    return 0 <= maximum <= used + max(IN_PROGRESS * added, CLOSE * maximum)


def require_room(
    at: Database | Db,
    quota: Quota,
    project_id: str,
    maximum: float,
    added: int = 1,
    *,
    stack_uuid: str = "",
    reserve: bool = True,
) -> Limit | None:
    """Check that a project may have `added` more. Return the limit that the transaction which adds them
    enforces, None if the project is far from it; a negative maximum is unlimited.

    The count is one that this process keeps if `at` is a database, and the present one on a connection.
    `added` resources of a stack that has some are all that it will have. `reserve` counts them as accepted.

    Raises:
        LimitExceeded: the project would exceed a limit that refuses early.
    """
    if maximum < 0 or not added:
        return None
    limit = Limit(project_id, int(maximum), quota.used, quota.refusal.format(int(maximum)))
    if not isinstance(at, Database):
        used = quota.used(at, project_id)
        return limit if is_near(used=used, added=added, maximum=limit.maximum) else None
    with counts_of(at, quota).locked(project_id) as counted:
        near = is_near(used=counted.number, added=added, maximum=limit.maximum)
        if stack_uuid and (reserve or near):
            with at.borrow() as db:
                added -= resource_counts.of_stack(db, stack_uuid)
        if quota.refuses_early and added > 0 and counted.number + added > maximum:
            raise LimitExceeded(limit.refusal)
        if reserve:
            counted.number += added
    return limit if near and added > 0 else None


@lru_cache(maxsize=32)  # quotas and databases; a process has one database
def counts_of(database: Database, quota: Quota) -> ProjectCounts:
    """Return the counts of a process."""

    def read(project_id: str) -> int:
        with database.borrow(hot=False) as db:  # planned for the size of the project
            return quota.used(db, project_id)

    return ProjectCounts(read)
