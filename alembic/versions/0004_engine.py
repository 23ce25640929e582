"""Operations besides create, update and delete; snapshots, signals, hooks, revision history, progress."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

OPERATIONS = "VALUE IN ('CREATE', 'UPDATE', 'DELETE', 'DISCARD', 'SUSPEND', 'RESUME', 'SNAPSHOT')"
FLAGS = ("keep_going", "converge", "retain")


def upgrade() -> None:
    """Add columns with constant defaults, and tables without users so far."""
    op.execute("ALTER DOMAIN resource_op DROP CONSTRAINT resource_op_known")
    op.execute(f"ALTER DOMAIN resource_op ADD CONSTRAINT resource_op_known CHECK ({OPERATIONS})")
    for name in FLAGS:
        op.add_column("stack", sa.Column(name, sa.Boolean(), server_default=sa.text("false"), nullable=False))
    op.add_column(
        "resource", sa.Column("suspended", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.create_index(
        "ix_revision_file_hashes",
        "revision",
        [sa.text("jsonb_path_query_array(files, '$.*')")],
        postgresql_using="gin",
        postgresql_with={"fastupdate": "off"},
    )
    op.create_index(  # few rows match: a single scan of the table
        "ix_resource_definition_closed",
        "resource_definition",
        ["stack_id", "valid_to"],
        postgresql_where=sa.text("valid_to IS NOT NULL"),
    )
    op.create_index(
        "ix_stray_handled", "stray", ["handled_at"], postgresql_where=sa.text("handled_at IS NOT NULL")
    )
    for name in ("resource", "event"):
        op.execute(
            f"ALTER TABLE {name} SET"
            " (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05)"
        )
    op.add_column("revision", sa.Column("adopted", sa.LargeBinary(), nullable=True))
    for name in ("traversal", "first_event", "copy_of"):
        op.add_column("revision", sa.Column(name, sa.BigInteger(), nullable=True))
    op.add_column("revision", sa.Column("outcome", sa.Text(), nullable=True))
    op.add_column("revision", sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True))
    op.create_check_constraint(
        op.f("ck_revision_outcome_known"),
        "revision",
        "outcome IN ('complete', 'failed', 'cancelled', 'superseded')",
    )
    op.create_check_constraint(
        op.f("ck_revision_outcome_has_a_time"), "revision", "(outcome IS NULL) = (ended_at IS NULL)"
    )
    op.create_check_constraint(
        op.f("ck_revision_outcome_of_a_traversal"), "revision", "outcome IS NULL OR traversal IS NOT NULL"
    )
    op.create_index("ix_revision_open", "revision", ["stack_id"], postgresql_where=sa.text("outcome IS NULL"))
    op.add_column(
        "graph_node",
        sa.Column("hooks", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    )
    op.create_table(
        "snapshot",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("uuid", sa.UUID(), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), server_default="CREATE", nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("status_reason", sa.Text(), nullable=False),
        sa.Column("traversal", sa.BigInteger(), nullable=False),
        sa.Column("revision_id", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tries", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.CheckConstraint("action IN ('CREATE', 'DELETE')", name="action_known"),
        sa.CheckConstraint("(action = 'DELETE') = (due_at IS NOT NULL)", name="delete_is_due"),
        sa.CheckConstraint("status IN ('IN_PROGRESS', 'COMPLETE', 'FAILED')", name="status_known"),
        sa.ForeignKeyConstraint(["stack_id"], ["stack.id"], name="fk_snapshot_stack_id", ondelete="CASCADE"),
        sa.ForeignKeyConstraint(
            ["revision_id"], ["revision.id"], name="fk_snapshot_revision_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_snapshot"),
        sa.UniqueConstraint("uuid", name="uq_snapshot_uuid"),
    )
    op.create_index("ix_snapshot_stack", "snapshot", ["stack_id", "created_at"])
    op.create_index("ix_snapshot_due", "snapshot", ["due_at"], postgresql_where=sa.text("due_at IS NOT NULL"))
    op.create_index("ix_snapshot_revision_id", "snapshot", ["revision_id"])
    op.create_table(
        "resource_snapshot",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("snapshot_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("runs_as", sa.Text(), nullable=True),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("physical_id", sa.Text(), nullable=True),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("metadata", postgresql.JSON(), nullable=True),
        sa.Column("data", postgresql.JSON(), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=True),
        sa.Column("kept", sa.LargeBinary(), nullable=True),
        sa.CheckConstraint(
            "sealed IS NULL OR coalesce(metadata, data) IS NULL",
            name="sealed_or_plain",
        ),
        sa.ForeignKeyConstraint(
            ["snapshot_id"], ["snapshot.id"], name="fk_resource_snapshot_snapshot_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_resource_snapshot"),
        sa.UniqueConstraint("snapshot_id", "name", name="uq_resource_snapshot_snapshot_id_name"),
    )
    op.create_table(
        "signal",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("resource_id", sa.BigInteger(), nullable=False),
        sa.Column("details", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("tries", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_signal"),
    )
    op.create_index("ix_signal_due", "signal", ["due_at"])
    op.create_index("ix_signal_resource", "signal", ["resource_id", "id"])
    op.create_index("ix_signal_stack", "signal", ["stack_id"])
    op.create_table(
        "progress",
        sa.Column("stack_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("traversal", sa.BigInteger(), nullable=False),
        sa.Column("counts", postgresql.JSONB(), nullable=False),
        sa.Column("counted_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("seconds", sa.Float(), server_default=sa.text("0"), nullable=False),
        sa.Column("final", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("stack_id", name="pk_progress"),
    )
    op.create_index("ix_progress_open", "progress", ["counted_at"], postgresql_where=sa.text("NOT final"))
