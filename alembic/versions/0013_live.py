"""Follow the events of all stacks in commit order; webhooks with their positions; failure causes by kind."""

import sqlalchemy as sa
from alembic import op

from orchestrator.store.tables.base import Xid8

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, then build the index concurrently."""
    op.create_table(
        "webhook",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("uuid", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=True),
        sa.Column("nested_depth", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("only_stacks", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("shown_url", sa.Text(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.Text(), server_default="active", nullable=False),
        sa.Column("xid", Xid8(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("rung", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("slow", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("tries", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("delivered", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("delivered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=True),
        sa.Column("lease", sa.BigInteger(), nullable=True),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_by", sa.Text(), server_default="", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("state IN ('active', 'dead')", name=op.f("ck_webhook_state_known")),
        sa.CheckConstraint(
            "(lease IS NULL) = (leased_until IS NULL)", name=op.f("ck_webhook_lease_has_an_end")
        ),
        sa.CheckConstraint("nested_depth >= 0", name=op.f("ck_webhook_depth_counts")),
        sa.ForeignKeyConstraint(
            ["stack_id"], ["stack.id"], name=op.f("fk_webhook_stack_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook")),
        sa.UniqueConstraint("uuid", name=op.f("uq_webhook_uuid")),
    )
    op.create_index("ix_webhook_project", "webhook", ["project_id", "id"])
    op.create_index(
        "ix_webhook_stack", "webhook", ["stack_id"], postgresql_where=sa.text("stack_id IS NOT NULL")
    )
    op.create_index("ix_webhook_due", "webhook", ["due_at"], postgresql_where=sa.text("state = 'active'"))
    for name in ("resource_type", "physical_id", "action"):
        op.add_column("failure", sa.Column(name, sa.Text(), nullable=True))
    op.add_column("failure", sa.Column("attempts", sa.SmallInteger(), nullable=True))
    with op.get_context().autocommit_block():
        # An interrupted build leaves an invalid index behind.
        op.drop_index("ix_event_xid", "event", if_exists=True, postgresql_concurrently=True)
        op.create_index("ix_event_xid", "event", ["xid"], postgresql_concurrently=True)
