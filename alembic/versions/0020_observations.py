"""Observations that run beside operations, and queued actions."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns and tables, empty; build the index concurrently."""
    op.add_column("resource", sa.Column("observed_reason", sa.Text(), nullable=True))
    op.add_column("resource", sa.Column("unreachable_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("resource", sa.Column("unreachable_reason", sa.Text(), nullable=True))
    op.add_column("stack", sa.Column("queued_action", sa.Text(), nullable=True))
    op.add_column("stack", sa.Column("queued_at", sa.DateTime(timezone=True), nullable=True))
    op.create_table(
        "observation_pass",
        sa.Column("stack_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column(
            "requested_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False
        ),
        sa.Column("after_name", sa.Text(), server_default="", nullable=False),
        sa.Column("after_id", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("exhausted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("stack_id", name=op.f("pk_observation_pass")),
    )
    op.create_index("ix_observation_pass_due", "observation_pass", ["due_at"])
    op.create_table(
        "observation",
        sa.Column("resource_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("tries", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.PrimaryKeyConstraint("resource_id", name=op.f("pk_observation")),
    )
    op.create_index("ix_observation_due", "observation", ["due_at"])
    op.create_index("ix_observation_stack", "observation", ["stack_id"])
    with op.get_context().autocommit_block():
        # An interrupted build leaves an invalid index behind.
        op.drop_index("ix_stack_queued_action", "stack", if_exists=True, postgresql_concurrently=True)
        op.create_index(
            "ix_stack_queued_action",
            "stack",
            ["queued_at"],
            postgresql_where=sa.text("queued_action IS NOT NULL AND status <> 'IN_PROGRESS'"),
            postgresql_concurrently=True,
        )
