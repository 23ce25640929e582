"""The dependents that a node releases before its resource is ready."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a nullable column, which needs no rewrite."""
    op.add_column("graph_node", sa.Column("early_needed_by", ARRAY(sa.BigInteger()), nullable=True))
