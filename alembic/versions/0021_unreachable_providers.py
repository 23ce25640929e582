"""Unreachable providers: attempts in a row that gave no answer, and resources marked unhealthy by a user."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; the defaults need no rewrite of the tables."""
    op.add_column(
        "graph_node",
        sa.Column("unreachable_tries", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
    )
    op.add_column(
        "resource",
        sa.Column("marked_unhealthy", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )
