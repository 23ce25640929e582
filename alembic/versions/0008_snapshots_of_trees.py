"""Which snapshot a revision restores: what is nested is restored from the copies that one names."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; it has no foreign key, for a snapshot may go while it is restored."""
    op.add_column("revision", sa.Column("restores", sa.BigInteger(), nullable=True))
