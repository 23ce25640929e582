"""Store the resource type that an environment mapped a type to."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; rows without a value run as the type in their template."""
    op.add_column("resource", sa.Column("runs_as", sa.Text(), nullable=True))
