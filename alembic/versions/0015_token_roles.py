"""Roles of tokens."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; existing tokens keep the role of a member."""
    op.add_column(
        "api_token",
        sa.Column("roles", sa.ARRAY(sa.Text()), server_default=sa.text("'{member}'"), nullable=False),
    )
