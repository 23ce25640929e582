"""The end of the last outage during an operation: no ready timeout includes an outage."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a nullable column, which needs no rewrite."""
    op.add_column("resource", sa.Column("reachable_since", sa.DateTime(timezone=True), nullable=True))
