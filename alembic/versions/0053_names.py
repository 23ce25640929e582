"""Tables and columns have the names of the glossary."""

from alembic import op

revision = "0053"
down_revision = "0052"
branch_labels = None
depends_on = None

NAMES = (
    "TABLE resource RENAME leftover TO deposed",
    "INDEX ix_resource_leftover RENAME TO ix_resource_deposed",
    "TABLE graph_node RENAME rung_at TO enqueued_at",
    "TABLE graph_node RENAME rings TO re_enqueues",
    "TABLE graph_node RENAME CONSTRAINT ck_graph_node_blocked_is_not_rung TO ck_graph_node_blocked_is_not_enqueued",
    "TABLE observation_group RENAME rung_at TO enqueued_at",
    "TABLE webhook RENAME rung TO has_new_events",
    "TABLE stray RENAME TO orphan",
    "SEQUENCE stray_id_seq RENAME TO orphan_id_seq",
    "TABLE orphan RENAME CONSTRAINT pk_stray TO pk_orphan",
    "INDEX ix_stray_open RENAME TO ix_orphan_open",
    "INDEX ix_stray_handled RENAME TO ix_orphan_handled",
    "TABLE disturbed_stack RENAME TO stale_child",
    "TABLE stale_child RENAME CONSTRAINT pk_disturbed_stack TO pk_stale_child",
)
# PostgreSQL names these constraints after their column, and a rename of the column leaves them.
NOT_NULL = """
DO $$ DECLARE statement text; BEGIN
    FOR statement IN
        SELECT format('ALTER TABLE %I RENAME CONSTRAINT %I TO %I', c.relname, n.conname,
            format('%s_%s_not_null', c.relname, a.attname))
        FROM pg_constraint n JOIN pg_class c ON c.oid = n.conrelid
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = n.conkey[1]
        WHERE n.contype = 'n' AND n.connamespace = 'public'::regnamespace
            AND c.relname IN ('resource', 'graph_node', 'webhook', 'orphan', 'stale_child')
            AND n.conname <> format('%s_%s_not_null', c.relname, a.attname)
    LOOP
        EXECUTE statement;
    END LOOP;
END $$
"""


def upgrade() -> None:
    """Rename tables, columns, constraints and indexes; no row is rewritten."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    for name in NAMES:
        op.execute(f"ALTER {name}")
    op.execute(NOT_NULL)
