"""Requests without an answer that may still be carried out."""

import sqlalchemy as sa
from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the table, with a row for each resource with such requests."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "late_request",
        sa.Column("resource_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("lost_at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("until", TIME, nullable=False),
        sa.Column("due_at", TIME, nullable=False),
        sa.Column("pauses", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("marked", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("resource_id", name=op.f("pk_late_request")),
    )
    op.create_index("ix_late_request_due", "late_request", ["due_at"])
