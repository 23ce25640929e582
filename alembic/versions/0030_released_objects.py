"""Whether a replaced object has given up its ports, addresses and names."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a nullable column, which needs no rewrite."""
    op.add_column("resource", sa.Column("released", sa.Boolean(), nullable=True))
