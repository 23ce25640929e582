"""Searches for objects of creates that were repeated."""

import sqlalchemy as sa
from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns of a search to the orphans."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column("stray", sa.Column("physical_name", sa.Text(), server_default="", nullable=False))
    op.add_column("stray", sa.Column("search_until", sa.DateTime(timezone=True), nullable=True))
    op.add_column("stray", sa.Column("search_due_at", sa.DateTime(timezone=True), nullable=True))
