"""Which request a stack's traversal comes from, so that the lines of the log about it can be found."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the column."""
    op.add_column("stack", sa.Column("request_id", sa.Text(), nullable=True))
