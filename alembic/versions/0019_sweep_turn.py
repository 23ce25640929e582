"""Start of the last sweep: one sweep per interval, for any number of workers."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table; the first sweep inserts its row."""
    op.create_table(
        "sweep_turn",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("begun_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_sweep_turn_only_one")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sweep_turn")),
    )
