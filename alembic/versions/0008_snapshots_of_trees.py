"""The snapshot that a revision restores: nested stacks are restored from the copies in it."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column, without a foreign key: a snapshot may be deleted during its restore."""
    op.add_column("revision", sa.Column("restores", sa.BigInteger(), nullable=True))
