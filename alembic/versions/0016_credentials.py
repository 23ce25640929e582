"""Credentials delegated by users at Keystone, for later operations of their stacks."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "credential",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("stack_uuid", sa.UUID(), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=True),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("user_id", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="making", nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tries", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("state IN ('making', 'held', 'going')", name=op.f("ck_credential_state_known")),
        sa.CheckConstraint("(state = 'held') = (due_at IS NULL)", name=op.f("ck_credential_held_is_not_due")),
        sa.CheckConstraint(
            "state <> 'held' OR stack_id IS NOT NULL", name=op.f("ck_credential_held_by_a_stack")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_credential")),
    )
    op.create_index(
        "uq_credential_held",
        "credential",
        ["stack_id"],
        unique=True,
        postgresql_where=sa.text("state = 'held'"),
    )
    op.create_index(
        "ix_credential_due", "credential", ["due_at"], postgresql_where=sa.text("due_at IS NOT NULL")
    )
