"""The current step of an open operation, and the time of the last answered delete request."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add nullable columns, which need no rewrite."""
    op.add_column("resource", sa.Column("step", sa.Text(), nullable=True))
    op.add_column("resource", sa.Column("requested_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("stray", sa.Column("requested_at", sa.DateTime(timezone=True), nullable=True))
