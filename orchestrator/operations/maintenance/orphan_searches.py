"""Search for objects of lost creates that arrive after the create was repeated, or after its resource was
removed (docs/internals/protocol.md rule 4). What is found is recorded as an orphan, and deleted as such.
"""

from __future__ import annotations

from psycopg import Connection
from psycopg.rows import TupleRow

from orchestrator.logs import logger
from orchestrator.operations.maintenance.orphan_access import OrphanAccess
from orchestrator.resources.verbs.values import found_ids
from orchestrator.store.connections.database import UNREACHABLE
from orchestrator.store.maintenance import orphan_searches as store

log = logger()


def search_orphans(db: Connection[TupleRow], access: OrphanAccess, limit: int = 20) -> int:
    """Carry out the searches that are due; return the number of orphans found."""
    found = 0
    for search in store.due(db, limit):
        found += _searched(db, access, search)
    return found


def _searched(db: Connection[TupleRow], access: OrphanAccess, search: store.OrphanSearch) -> int:
    """Carry out a search; return the number of orphans found."""
    try:
        ctx = access.context(search.physical_name, search.token, search.project_id, search.root_id)
        found = found_ids(access.types[search.type].find(ctx, search.token))
        orphans = store.record_found(db, search.id, found) if found else []
        store.continue_(db, search.id)
    except UNREACHABLE:  # the database, not the provider
        raise
    except Exception as error:  # of whichever kind: the sweep has more to do than this search
        log.warning("orphan_search_failed", token=search.token, type=search.type, error=str(error))
        if store.postpone(db, search.id):
            log.error("orphan_search_given_up", token=search.token, type=search.type)
        return 0
    if orphans:
        log.warning("late_objects_found", token=search.token, type=search.type, physical_ids=orphans)
    return len(orphans)
