"""Repairs of faults."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB, UUID

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "repair",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("uuid", UUID(as_uuid=True), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("fault_id", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("root_id", sa.BigInteger(), nullable=False),
        sa.Column("group_id", sa.BigInteger(), nullable=False),
        sa.Column("resource_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("physical_id", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("fault_reason", sa.Text(), nullable=False),
        sa.Column("differences", JSONB(), nullable=False),
        sa.Column("action", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("traversal", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "status IN ('reported', 'waiting', 'pending', 'approved', 'started', 'done', 'failed', "
            "'superseded', 'declined', 'given_up')",
            name=op.f("ck_repair_status_known"),
        ),
        sa.CheckConstraint(
            "action IN ('update', 'recreate', 'replace')", name=op.f("ck_repair_action_known")
        ),
        sa.CheckConstraint(
            "(started_at IS NULL) = (traversal IS NULL)", name=op.f("ck_repair_start_has_a_traversal")
        ),
        sa.CheckConstraint(
            "(decided_at IS NULL) = (decided_by IS NULL)", name=op.f("ck_repair_approval_has_an_author")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_repair")),
        sa.UniqueConstraint("uuid", name=op.f("uq_repair_uuid")),
        sa.UniqueConstraint("fault_id", name=op.f("uq_repair_fault_id")),
    )
    op.create_index("ix_repair_due", "repair", ["due_at"], postgresql_where=sa.text("due_at IS NOT NULL"))
    op.create_index(
        "ix_repair_started", "repair", ["root_id"], postgresql_where=sa.text("status = 'started'")
    )
    op.create_index("ix_repair_stack", "repair", ["stack_id", "name"])
    op.create_index("ix_repair_project", "repair", ["project_id", "id"])
