"""The SQL around a visit: claim nodes, read them, release them, and keep the dispatch window filled.

Each statement is its own transaction (docs/internals/protocol.md rules 1-4, 15). The outcomes of visits
are in `outcome_sql.py`; `repository.py` has the functions that run the statements.
"""

from __future__ import annotations

from orchestrator.engine.states import RESOURCE_KINDS
from orchestrator.store.tables.base import check_in

# Generic plans are made once, possibly while the tables are empty, and must be good for any size. Every row
# is therefore reached by its primary key from a handful of other rows. `x.id > 0` and the like are always
# true; they lower the planner's estimate, which would be 100 rows. `+ 0` prevents the use of an index. Keys
# are joined as `n.id = ANY (ARRAY[x.id])`: with `n.id = x.id` the planner may walk a table in the order of
# its key when it believes that the table has a single row, and would still do so at a million rows. QUEUED
# and CHECKING reach a node by its id while it has a state. The empty second value, which is no state, keeps
# the planner off the partial indexes: a plan made while these were nearly empty would walk all of them later.
IS_QUEUED = "state IN ('queued', '')"
IS_CHECKING = "state IN ('checking', '')"
QUEUED = f"n.{IS_QUEUED}"
CHECKING = f"n.{IS_CHECKING}"

# Whether a deposed incarnation o of a resource may hold what another incarnation needs.
HOLDS = "o.deposed AND o.attempt > 0 AND o.released IS NOT TRUE"

# The credential of a visit. The caller of a DELETE or CHECK may have delegated their own for it, with which
# nothing else runs: no signal, and no later operation (operations/adr/0026).
CREDENTIAL = f"""CASE WHEN s.action IN ('DELETE', 'CHECK') AND {check_in("n.kind", RESOURCE_KINDS)}
        THEN coalesce(s.operation_credential_id, s.credential_id) ELSE s.credential_id END"""

NODE_COLUMNS = "n.id, n.kind, n.traversal, n.queue, n.label, n.retry_count, n.lost_leases"


def stack_columns(revision: str = "s.revision_id") -> str:
    """Return the columns of a `StackView`; `revision` is the id of the revision to be used."""
    return f"""s.id, s.uuid::text, s.name, s.project_id, s.root_id, s.traversal, s.halted_traversal,
    s.action, s.status, {revision}, (s.timeout_mins * 60)::float8, s.converge, s.retain, s.request_id"""


STACK_COLUMNS = stack_columns()


def visit_columns(revision: str = "s.revision_id", credential: str = CREDENTIAL) -> str:
    """Return the columns that `repository.resource_visit` reads: of n (node), s (stack), r (resource),
    d (definition) and the required resources. `credential` is the id of the credential to be used.
    """
    return f"""
{NODE_COLUMNS},
    {stack_columns(revision)},
    r.id, r.uuid::text, r.name, r.type, r.action, r.status, r.physical_id, r.reference_id, r.properties,
        r.attributes,
    r.data, convert_from(r.sealed, 'UTF8'), r.attempt, r.op,
    extract(epoch FROM clock_timestamp() - r.op_started_at)::float8,
    extract(epoch FROM r.lost_at - clock_timestamp())::float8,
    r.requires, r.definition_id, r.metadata, r.runs_as, r.value_digest,
        r.input_digests, r.deposed, r.suspended,
    d.id, d.body, encode(d.digest, 'hex'), d.requires, d.dep_attrs,
    inputs.handed_on, nullif(n.hooks, '{{}}'), n.unreachable_tries,
    extract(epoch FROM clock_timestamp() - n.waiting_since)::float8, r.marked_unhealthy, r.repair,
    extract(epoch FROM clock_timestamp() - greatest(r.op_started_at, r.reachable_since))::float8,
    r.step, extract(epoch FROM clock_timestamp() - r.requested_at)::float8,
    n.early_needed_by && n.needed_by, NOT n.early_needed_by <@ n.needed_by, s.automatic,
    r.released, n.absent,
    n.refused_since || jsonb_build_object('now', extract(epoch FROM clock_timestamp())), n.refusal,
    {credential}
"""


VISIT_COLUMNS = visit_columns()


def visit_joins(
    definition: str = "coalesce(n.definition_id, r.definition_id)",
    requirement: str = "q.name = ANY(d.requires) AND NOT q.deposed",
) -> str:
    """Return the tables that VISIT_COLUMNS reads, joined to n.

    `definition` is the id of the definition, `requirement` the condition on a required resource q. Every
    table is joined: PostgreSQL walks all expressions of a statement that has a subquery in one of them, each
    time that it runs.
    """
    return f"""
JOIN stack s ON s.id = ANY (ARRAY[n.stack_id])
LEFT JOIN resource r ON r.id = ANY (ARRAY[n.resource_id])
LEFT JOIN resource_definition d ON d.id = ANY (ARRAY[{definition}])
CROSS JOIN LATERAL (
    SELECT json_agg(json_build_array(
        q.id, q.name, q.physical_id, q.reference_id, q.action, q.status,
        CASE
            WHEN d.dep_attrs -> q.name ? '*' THEN q.attributes
            WHEN d.dep_attrs ? q.name THEN (
                SELECT json_object_agg(a.name, q.attributes -> a.name)
                FROM jsonb_array_elements_text(d.dep_attrs -> q.name) AS a(name)
                WHERE q.attributes -> a.name IS NOT NULL)
        END,
        convert_from(q.sealed, 'UTF8'), q.value_digest)) AS handed_on
    FROM resource q
    WHERE q.stack_id = CASE WHEN n.kind = 'update' THEN n.stack_id END AND {requirement}
) AS inputs
"""


VISIT_JOINS = visit_joins()

# Of a claimed resource also whether deposed incarnations may hold what it needs. Only the name selects them:
# there may be very many deposed resources in a stack.
READ_CLAIMED = f"""
SELECT {VISIT_COLUMNS}, others.hold
FROM graph_node n
{VISIT_JOINS}CROSS JOIN LATERAL (
    SELECT bool_or({HOLDS}) AS hold FROM resource o
    WHERE o.stack_id = n.stack_id AND o.name = r.name AND o.id <> r.id
) AS others
WHERE n.id = ANY(%(ids)s) AND n.lease = %(lease)s
ORDER BY n.id
"""

# The revision that the definition of the resource came with.
_BUILT_REVISION = """coalesce((SELECT v.id FROM revision v
        WHERE v.stack_id = s.id AND v.number = d.valid_from), s.revision_id)"""
# Its author's credential: an operation may be completed while the stack has content of another author.
_BUILT_CREDENTIAL = """(SELECT CASE WHEN v.author IS NULL AND v.credential_id IS NULL
            THEN s.credential_id ELSE v.credential_id END
        FROM (SELECT 1) AS x LEFT JOIN revision v ON v.stack_id = s.id AND v.number = d.valid_from)"""


def _read_as_built(requirement: str) -> str:
    """Return the statement that reads a node with the definition its resource has, not the node's."""
    return f"""
SELECT {visit_columns(_BUILT_REVISION, _BUILT_CREDENTIAL)}
FROM graph_node n
{visit_joins("r.definition_id", requirement)}WHERE n.id = %(id)s
ORDER BY n.id
"""


# A resource to be adopted, with the definition that it was adopted with.
READ_FOR_ADOPTION = _read_as_built("q.name = ANY(d.requires)")

# A resource with an open operation, with the inputs that this was started with: the requirements that have a
# digest.
READ_WITH_OPERATION_INPUTS = _read_as_built(
    "q.id = ANY(r.requires) AND r.input_digests[array_position(r.requires, q.id)] <> ''"
)

# The last moment at which the former holder of the lease may have sent a request: its last renewal, plus the
# third of the lease until the next renewal. A request follows a durable statement of its worker at once.
LOST_AT = """CASE WHEN r.lease IS NULL THEN r.lost_at
        ELSE r.leased_until - make_interval(secs => %(seconds)s::float8 * 2 / 3) END"""

CLAIM = f"""
WITH want AS MATERIALIZED (
    SELECT n.id, n.resource_id FROM unnest(%(ids)s::bigint[]) AS x(id)
    JOIN graph_node n ON n.id = ANY (ARRAY[x.id])
    WHERE x.id > 0 AND n.traversal + 0 = %(traversal)s AND {QUEUED}
    ORDER BY x.id FOR UPDATE OF n SKIP LOCKED
), r AS (
    UPDATE resource r
    SET lost_at = {LOST_AT},
        lease = %(lease)s, leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
    FROM want w
    WHERE r.id = ANY (ARRAY[w.resource_id]) AND (r.lease IS NULL OR r.leased_until < clock_timestamp())
    RETURNING w.id AS node_id
), free AS (
    SELECT node_id FROM r
    UNION ALL SELECT w.id FROM want w  -- no resource to claim, or an older visit deleted it
    WHERE w.resource_id IS NULL
        OR NOT EXISTS (SELECT 1 FROM resource x WHERE x.id = ANY (ARRAY[w.resource_id]))
)
UPDATE graph_node n
SET state = 'checking', lease = %(lease)s,
    leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
FROM free WHERE n.id = ANY (ARRAY[free.node_id])
RETURNING n.id
"""

# The input of a check of local types. Nothing is claimed: the statement that writes the outcome locks the
# node and the resource, if both are still free (operations/adr/0001).
_QUEUED_COLUMNS = f"SELECT {VISIT_COLUMNS}, r.leased_until >= clock_timestamp()"
_STILL_QUEUED = f"n.traversal + 0 = %(traversal)s::bigint AND {QUEUED}"
READ_QUEUED = f"""
{_QUEUED_COLUMNS}
FROM unnest(%(ids)s::bigint[]) AS x(id)
JOIN graph_node n ON n.id = ANY (ARRAY[x.id])
{VISIT_JOINS}WHERE x.id > 0 AND {_STILL_QUEUED}
"""
# Without a list of ids the plan has a step less that copies all those columns.
READ_QUEUED_ONE = f"""
{_QUEUED_COLUMNS}
FROM graph_node n
{VISIT_JOINS}WHERE n.id = ANY (ARRAY[%(id)s::bigint]) AND {_STILL_QUEUED}
"""

# The resource is claimed: retry when its lease ends, or after a second, since most claims last milliseconds.
TRAVERSALS_OF = "SELECT DISTINCT stack_id, traversal FROM graph_node WHERE id = ANY(%(ids)s)"

DEFER_BUSY = f"""
UPDATE graph_node n
SET state = 'waiting', enqueued_at = NULL, re_enqueues = 0, waiting_since = coalesce(n.waiting_since, now()),
    due_at = least(r.leased_until, clock_timestamp() + interval '1 second')
FROM resource r
WHERE n.id = ANY(%(ids)s) AND n.traversal = %(traversal)s AND {QUEUED}
    AND r.id = ANY (ARRAY[n.resource_id]) AND r.leased_until >= clock_timestamp()
"""

INSERT_ORPHAN = """
INSERT INTO orphan (stack_id, resource_id, token, type, physical_id)
VALUES (%(stack_id)s, %(resource_id)s, %(token)s, %(type)s, %(physical_id)s)
"""

RENEW = """
WITH r AS (
    UPDATE resource SET leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
    WHERE id = ANY(%(resources)s) AND lease = ANY(%(leases)s)
)
UPDATE graph_node SET leased_until = clock_timestamp() + make_interval(secs => %(seconds)s)
WHERE id = ANY(%(nodes)s) AND lease = ANY(%(leases)s)
"""

# As after a lost lease: whether the request was sent is unknown. A create with an id was answered.
MARK_INTERRUPTED = """
UPDATE resource r SET lost_at = clock_timestamp() - interval '1 day'
FROM graph_node n
WHERE n.id = ANY(%(ids)s) AND r.id = ANY (ARRAY[n.resource_id]) AND r.lease = %(lease)s
    AND r.op IS NOT NULL AND (r.op <> 'CREATE' OR r.physical_id IS NULL) AND r.lost_at IS NULL
"""

# The sweep sends the next message: the sender of the last message may not be notified any more.
RELEASE = """
UPDATE graph_node SET state = 'queued', lease = NULL, leased_until = NULL, enqueued_at = NULL, re_enqueues = 0
WHERE id = %(id)s AND state = 'checking' AND lease = %(lease)s
"""

# Nodes of a task that was to observe several of them: each is visited in its own task (adr/0022).
SEPARATE = """
WITH released AS (
    UPDATE graph_node n
    SET state = 'queued', lease = NULL, leased_until = NULL, enqueued_at = now(), re_enqueues = 0
    WHERE n.id = ANY (%(ids)s::bigint[]) AND n.state = 'checking' AND n.lease = %(lease)s
    RETURNING n.id, n.traversal, n.queue, n.label, n.resource_id
), r AS (
    UPDATE resource r SET lease = NULL, leased_until = NULL
    FROM released WHERE r.id = ANY (ARRAY[released.resource_id]) AND r.lease = %(lease)s
)
SELECT 'send', id, traversal, queue, label FROM released
"""

REFILL_WINDOW = """
WITH outstanding AS (
    SELECT count(*) AS n FROM (
        SELECT 1 FROM graph_node WHERE root_id = %(root)s AND state = 'queued' AND enqueued_at IS NOT NULL
            LIMIT %(window)s) o
), chosen AS MATERIALIZED (
    SELECT id FROM graph_node WHERE root_id = %(root)s AND state = 'queued' AND enqueued_at IS NULL
    LIMIT greatest(0, %(window)s - (SELECT n FROM outstanding)) FOR UPDATE SKIP LOCKED
), enqueued AS (
    UPDATE graph_node n SET enqueued_at = now(), re_enqueues = 0 FROM chosen c WHERE n.id = ANY (ARRAY[c.id])
    RETURNING n.id, n.traversal, n.queue, n.label
)
SELECT 'outstanding', n, NULL, NULL, NULL FROM outstanding
UNION ALL SELECT 'send', id, traversal, queue, label FROM enqueued
"""
