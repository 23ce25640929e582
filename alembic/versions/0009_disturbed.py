"""Nested stacks that were changed directly."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "disturbed_stack",
        sa.Column("stack_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("stack_id", name=op.f("pk_disturbed_stack")),
    )
