"""The number of resources of each revision, for the quota of a project."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

# Current revisions only: earlier ones do not count, and a rollback counts again with the next update.
COUNT = """
UPDATE revision v SET resource_count = counted.number
FROM (
    SELECT s.revision_id, count(*) AS number FROM stack s JOIN resource r ON r.stack_id = s.id
    WHERE s.deleted_at IS NULL AND NOT r.leftover GROUP BY s.revision_id
) AS counted
WHERE v.id = counted.revision_id
"""


def upgrade() -> None:
    """Add a column with a default, which needs no rewrite, count the resources of live stacks, and add an
    index for their sum.
    """
    op.add_column(
        "revision", sa.Column("resource_count", sa.Integer(), server_default=sa.text("0"), nullable=False)
    )
    op.execute(COUNT)
    op.create_index(
        "ix_stack_live_project",
        "stack",
        ["project_id"],
        postgresql_include=["revision_id"],
        postgresql_where=sa.text("deleted_at IS NULL"),
    )
