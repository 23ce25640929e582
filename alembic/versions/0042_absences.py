"""Absences that were observed once after an outage."""

import sqlalchemy as sa
from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column: a constant default rewrites no row."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column(
        "graph_node", sa.Column("absent", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
