"""Stacks that continue after an outage which outlasted their timeout."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns, whose defaults need no rewrite, and an index of the few stacks that wait."""
    op.add_column("stack", sa.Column("resume", sa.Boolean(), nullable=True))
    op.add_column("stack", sa.Column("resume_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        "stack", sa.Column("resume_tries", sa.SmallInteger(), server_default=sa.text("0"), nullable=False)
    )
    op.create_index(
        "ix_stack_resume", "stack", ["resume_at"], postgresql_where=sa.text("resume_at IS NOT NULL")
    )
