"""The first schema.

Before the first release it may be generated again from the models: delete it, run `alembic revision
--autogenerate --rev-id 0001 -m "first schema"` against an empty database, and restore `COMPRESSION`.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from orchestrator.store.tables.base import EnumText, Xid8, create_domain

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# Templates are read far more often than written; a server built without lz4 keeps its default.
COMPRESSION = """
DO $$ BEGIN
    IF (SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression') THEN
        ALTER TABLE content ALTER COLUMN body SET COMPRESSION lz4;
        ALTER TABLE resource_definition ALTER COLUMN body SET COMPRESSION lz4;
    END IF;
END $$
"""

WORDS = {
    "node_kind": ("plan", "update", "cleanup", "join", "finish"),
    "node_state": ("blocked", "queued", "checking", "waiting", "paused", "ready", "failed", "dropped"),
    "resource_action": (
        "INIT",
        "CREATE",
        "DELETE",
        "UPDATE",
        "ROLLBACK",
        "SUSPEND",
        "RESUME",
        "ADOPT",
        "SNAPSHOT",
        "CHECK",
    ),
    "resource_status": ("IN_PROGRESS", "COMPLETE", "FAILED"),
    "resource_op": ("CREATE", "UPDATE", "DELETE", "DISCARD"),
}


def upgrade() -> None:
    """Create all tables."""
    for name, words in WORDS.items():
        op.execute(create_domain(name, words))
    op.create_table(
        "api_token",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("token_hash", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("length(token_hash) = 32", name=op.f("ck_api_token_hash_is_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_token")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_api_token_token_hash")),
    )
    op.create_table(
        "content",
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("length(hash) = 32", name=op.f("ck_content_hash_is_sha256")),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_content")),
    )
    op.create_table(
        "stack",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("uuid", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner_id", sa.BigInteger(), nullable=True),
        sa.Column("parent_resource_id", sa.BigInteger(), nullable=True),
        sa.Column("parent_resource", sa.Text(), nullable=True),
        sa.Column("root_id", sa.BigInteger(), nullable=False),
        sa.Column("depth", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("status_reason", sa.Text(), server_default="", nullable=False),
        sa.Column("traversal", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("halted_traversal", sa.BigInteger(), nullable=True),
        sa.Column("revision_id", sa.BigInteger(), nullable=True),
        sa.Column("good_revision_id", sa.BigInteger(), nullable=True),
        sa.Column("disable_rollback", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("timeout_mins", sa.BigInteger(), nullable=True),
        sa.Column("tags", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("convergence_policy", sa.Text(), server_default="report", nullable=False),
        sa.Column("credentials", sa.LargeBinary(), nullable=True),
        sa.Column("username", sa.Text(), server_default="", nullable=False),
        sa.Column("user_project_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "action_started_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(deleted_at IS NOT NULL) = (action = 'DELETE' AND status = 'COMPLETE')",
            name=op.f("ck_stack_deleted_is_complete"),
        ),
        sa.CheckConstraint(
            "action IN ('CREATE', 'DELETE', 'UPDATE', 'ROLLBACK', 'SUSPEND', 'RESUME', 'ADOPT', 'SNAPSHOT', 'CHECK', 'RESTORE')",
            name=op.f("ck_stack_action_known"),
        ),
        sa.CheckConstraint(
            "convergence_policy IN ('off', 'report', 'heal')", name=op.f("ck_stack_policy_known")
        ),
        sa.CheckConstraint(
            "status IN ('IN_PROGRESS', 'COMPLETE', 'FAILED')", name=op.f("ck_stack_status_known")
        ),
        sa.CheckConstraint("(owner_id IS NULL) = (depth = 0)", name=op.f("ck_stack_root_has_no_owner")),
        sa.CheckConstraint("(owner_id IS NULL) = (root_id = id)", name=op.f("ck_stack_root_is_its_own")),
        sa.CheckConstraint("halted_traversal <= traversal", name=op.f("ck_stack_halted_is_past")),
        sa.ForeignKeyConstraint(["owner_id"], ["stack.id"], name=op.f("fk_stack_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stack")),
        sa.UniqueConstraint("parent_resource_id", name=op.f("uq_stack_parent_resource_id")),
        sa.UniqueConstraint("uuid", name=op.f("uq_stack_uuid")),
    )
    op.create_index(
        "ix_stack_deleted",
        "stack",
        ["deleted_at"],
        unique=False,
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.create_index(
        "ix_stack_in_progress",
        "stack",
        ["action_started_at"],
        unique=False,
        postgresql_where=sa.text("status = 'IN_PROGRESS'"),
    )
    op.create_index(
        "ix_stack_owner",
        "stack",
        ["owner_id"],
        unique=False,
        postgresql_where=sa.text("owner_id IS NOT NULL"),
    )
    op.create_index("ix_stack_project_created", "stack", ["project_id", "created_at", "id"], unique=False)
    op.create_index("ix_stack_root", "stack", ["root_id"], unique=False)
    op.create_index(
        "uq_stack_live_name",
        "stack",
        ["project_id", "name"],
        unique=True,
        postgresql_where=sa.text("deleted_at IS NULL AND owner_id IS NULL"),
    )
    op.create_table(
        "stray",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("resource_id", sa.BigInteger(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("physical_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("handled_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stray")),
    )
    op.create_index(
        "ix_stray_open",
        "stray",
        ["resource_id"],
        unique=False,
        postgresql_where=sa.text("handled_at IS NULL"),
    )
    op.create_table(
        "event",
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("xid", Xid8(), server_default=sa.text("pg_current_xact_id()"), nullable=False),
        sa.Column("resource_name", sa.Text(), nullable=False),
        sa.Column("resource_type", sa.Text(), nullable=False),
        sa.Column("physical_id", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("properties", postgresql.JSON(astext_type=sa.Text()), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("stack_id", "id", name=op.f("pk_event")),
    )
    op.create_index("ix_event_order", "event", ["stack_id", "xid", "id"], unique=False)
    op.create_table(
        "failure",
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("traversal", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("resource_name", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("stack_id", "traversal", "id", name=op.f("pk_failure")),
    )
    op.create_table(
        "graph_node",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("root_id", sa.BigInteger(), nullable=False),
        sa.Column("traversal", sa.BigInteger(), nullable=False),
        sa.Column("kind", EnumText("node_kind"), nullable=False),
        sa.Column("resource_id", sa.BigInteger(), nullable=True),
        sa.Column("definition_id", sa.BigInteger(), nullable=True),
        sa.Column("queue", sa.Text(), nullable=False),
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column(
            "needed_by", postgresql.ARRAY(sa.BigInteger()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("blocked_by", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("dirty", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("state", EnumText("node_state"), nullable=False),
        sa.Column("observed_ready", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("observed_ready_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("retry_count", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("lost_leases", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("rung_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("rings", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("waiting_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease", sa.BigInteger(), nullable=True),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(kind IN ('update', 'cleanup')) = (resource_id IS NOT NULL)",
            name=op.f("ck_graph_node_visits_a_resource"),
        ),
        sa.CheckConstraint(
            "(state = 'blocked') = (blocked_by > 0)", name=op.f("ck_graph_node_blocked_is_counted")
        ),
        sa.CheckConstraint(
            "(state = 'checking') = (lease IS NOT NULL)", name=op.f("ck_graph_node_checking_has_a_lease")
        ),
        sa.CheckConstraint(
            "(state = 'waiting') = (due_at IS NOT NULL)", name=op.f("ck_graph_node_waiting_has_an_end")
        ),
        sa.CheckConstraint("observed_ready = (state = 'ready')", name=op.f("ck_graph_node_ready_is_a_state")),
        sa.CheckConstraint(
            "rung_at IS NULL OR state <> 'blocked'", name=op.f("ck_graph_node_blocked_is_not_rung")
        ),
        sa.CheckConstraint(
            "(lease IS NULL) = (leased_until IS NULL)", name=op.f("ck_graph_node_lease_has_an_end")
        ),
        sa.CheckConstraint("blocked_by >= 0", name=op.f("ck_graph_node_blocked_by_counts")),
        sa.CheckConstraint(
            "observed_ready = (observed_ready_at IS NOT NULL)", name=op.f("ck_graph_node_ready_has_a_time")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_graph_node")),
        postgresql_with={
            "fillfactor": "70",
            "autovacuum_vacuum_scale_factor": "0.05",
            "autovacuum_analyze_scale_factor": "0.05",
        },
    )
    op.create_index(
        "ix_graph_node_active",
        "graph_node",
        ["stack_id", "resource_id"],
        unique=False,
        postgresql_where=sa.text("state IN ('checking', 'waiting')"),
    )
    op.create_index(
        "ix_graph_node_leased",
        "graph_node",
        ["leased_until"],
        unique=False,
        postgresql_where=sa.text("state = 'checking'"),
    )
    op.create_index(
        "ix_graph_node_due",
        "graph_node",
        ["due_at"],
        unique=False,
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_index(
        "ix_graph_node_queued",
        "graph_node",
        ["root_id", "rung_at"],
        unique=False,
        postgresql_where=sa.text("state = 'queued'"),
    )
    op.create_index("ix_graph_node_stack", "graph_node", ["stack_id", "traversal", "kind"], unique=False)
    op.create_table(
        "resource",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("uuid", sa.UUID(), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("definition_id", sa.BigInteger(), nullable=True),
        sa.Column("physical_id", sa.Text(), nullable=True),
        sa.Column("reference_id", sa.Text(), nullable=True),
        sa.Column("action", EnumText("resource_action"), server_default="INIT", nullable=False),
        sa.Column("status", EnumText("resource_status"), server_default="COMPLETE", nullable=False),
        sa.Column("status_reason", sa.Text(), server_default="state changed", nullable=False),
        sa.Column("properties", postgresql.JSON(astext_type=sa.Text()), nullable=True),
        sa.Column("attributes", postgresql.JSON(astext_type=sa.Text()), nullable=True),
        sa.Column("metadata", postgresql.JSON(astext_type=sa.Text()), nullable=True),
        sa.Column("data", postgresql.JSON(astext_type=sa.Text()), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.Column("attempt", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("op", EnumText("resource_op"), nullable=True),
        sa.Column("op_started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lost_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease", sa.BigInteger(), nullable=True),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "requires", postgresql.ARRAY(sa.BigInteger()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column(
            "input_digests", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("built_digest", sa.LargeBinary(), nullable=True),
        sa.Column("replaces", sa.BigInteger(), nullable=True),
        sa.Column("replaced_by", sa.BigInteger(), nullable=True),
        sa.Column("observed", sa.Text(), nullable=True),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "action <> 'INIT' OR status = 'COMPLETE'", name=op.f("ck_resource_init_is_complete")
        ),
        sa.CheckConstraint(
            "(lease IS NULL) = (leased_until IS NULL)", name=op.f("ck_resource_lease_has_an_end")
        ),
        sa.CheckConstraint(
            "(observed IS NULL) = (observed_at IS NULL)", name=op.f("ck_resource_observed_has_a_time")
        ),
        sa.CheckConstraint("(op IS NULL) = (op_started_at IS NULL)", name=op.f("ck_resource_op_has_a_start")),
        sa.CheckConstraint(
            "cardinality(requires) = cardinality(input_digests)",
            name=op.f("ck_resource_digest_per_requirement"),
        ),
        sa.CheckConstraint("op IS NULL OR attempt > 0", name=op.f("ck_resource_op_has_a_token")),
        sa.CheckConstraint(
            "sealed IS NULL OR coalesce(properties, attributes, data) IS NULL",
            name=op.f("ck_resource_sealed_or_plain"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource")),
        postgresql_with={"fillfactor": "60"},
    )
    op.create_index(
        "ix_resource_op",
        "resource",
        ["stack_id"],
        unique=False,
        postgresql_where=sa.text("op IS NOT NULL"),
    )
    op.create_index("ix_resource_stack_name", "resource", ["stack_id", "name"], unique=False)
    op.create_table(
        "resource_definition",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("body", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column("requires", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column(
            "dep_attrs",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column("valid_from", sa.BigInteger(), nullable=False),
        sa.Column("valid_to", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("valid_to > valid_from", name=op.f("ck_resource_definition_valid_range")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_definition")),
        sa.UniqueConstraint(
            "stack_id", "name", "valid_from", name=op.f("uq_resource_definition_stack_id_name_valid_from")
        ),
    )
    op.create_table(
        "revision",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("template_hash", sa.LargeBinary(), nullable=False),
        sa.Column(
            "environment",
            postgresql.JSON(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column(
            "files", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column(
            "parameters",
            postgresql.JSON(astext_type=sa.Text()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.Column("outline", postgresql.JSON(astext_type=sa.Text()), nullable=False),
        sa.Column("created_by", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "action IN ('CREATE', 'DELETE', 'UPDATE', 'ROLLBACK', 'SUSPEND', 'RESUME', 'ADOPT', 'SNAPSHOT', 'CHECK', 'RESTORE')",
            name=op.f("ck_revision_action_known"),
        ),
        sa.ForeignKeyConstraint(
            ["stack_id"], ["stack.id"], name=op.f("fk_revision_stack_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["template_hash"], ["content.hash"], name=op.f("fk_revision_template_hash")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_revision")),
        sa.UniqueConstraint("stack_id", "number", name=op.f("uq_revision_stack_id_number")),
    )
    op.create_index("ix_revision_template_hash", "revision", ["template_hash"], unique=False)
    op.execute(COMPRESSION)


def downgrade() -> None:
    """Not supported: restore a backup, or write the next migration."""
    raise NotImplementedError
