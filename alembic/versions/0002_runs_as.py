"""Resources remember the type that an environment put in place of the one written."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; rows without it run as the type they were written with."""
    op.add_column("resource", sa.Column("runs_as", sa.Text(), nullable=True))
