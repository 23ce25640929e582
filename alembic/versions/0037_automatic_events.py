"""Events of automatic repairs."""

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns with a constant default, which need no rewrite."""
    for table in ("stack", "event"):
        op.add_column(
            table, sa.Column("automatic", sa.Boolean(), server_default=sa.text("false"), nullable=False)
        )


def downgrade() -> None:
    """Remove the columns."""
    for table in ("event", "stack"):
        op.drop_column(table, "automatic")
