"""Resources know what they hand on and whether the template still has them; planned nodes may be clean."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; what was built without a value digest is visited by the next update."""
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
