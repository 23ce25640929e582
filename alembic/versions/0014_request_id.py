"""The request id behind a traversal, to find its log lines."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("stack", sa.Column("request_id", sa.Text(), nullable=True))
