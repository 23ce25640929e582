"""The refusals of a node: their kinds, and the time of the first of each kind."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns: without a default, no row is rewritten."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.add_column("graph_node", sa.Column("refusal", sa.Text()))
    op.add_column("graph_node", sa.Column("refused_since", postgresql.JSONB()))
