"""Store the outputs of resources and their removal from the template; planned nodes may be clean."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; the next update visits resources without a value digest."""
    op.add_column("resource", sa.Column("value_digest", sa.Text(), nullable=True))
    op.add_column(
        "resource", sa.Column("leftover", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.create_index(
        "ix_resource_leftover",
        "resource",
        ["stack_id"],
        unique=False,
        postgresql_where=sa.text("leftover"),
    )
