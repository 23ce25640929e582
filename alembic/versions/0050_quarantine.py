"""Work that hung its process, and the number of processes that the watchdog has ended."""

import sqlalchemy as sa
from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None

TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables; both have few rows."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "hung_process",
        sa.Column("process", sa.Text(), nullable=False),
        sa.Column("ended", sa.BigInteger(), nullable=False),
        sa.Column("last_at", TIME, nullable=False),
        sa.Column("trace", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("process", name=op.f("pk_hung_process")),
    )
    op.create_table(
        "quarantine",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("object_id", sa.BigInteger(), nullable=False),
        sa.Column("hangs", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("last_at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("kind", "object_id", name=op.f("pk_quarantine")),
    )
