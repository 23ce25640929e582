"""Find resources by their physical id."""

import sqlalchemy as sa
from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

NAME = "ix_resource_physical_id"


def upgrade() -> None:
    """Build the index concurrently."""
    with op.get_context().autocommit_block():
        # An interrupted build leaves an invalid index behind.
        op.drop_index(NAME, "resource", if_exists=True, postgresql_concurrently=True)
        op.create_index(
            NAME,
            "resource",
            [sa.text("hashtextextended(physical_id, 0)")],
            postgresql_where=sa.text("physical_id IS NOT NULL"),
            postgresql_concurrently=True,
        )
