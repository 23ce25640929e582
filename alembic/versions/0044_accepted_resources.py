"""The names of the resources of large templates, for readers while a plan is being written; batches of groups."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table; revisions that were accepted before have no rows in it. Add the batches to the progress."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "accepted_resources",
        sa.Column("revision_id", sa.BigInteger(), nullable=False),
        sa.Column("last_name", sa.Text(), nullable=False),
        sa.Column("entries", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["revision_id"],
            ["revision.id"],
            name=op.f("fk_accepted_resources_revision_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("revision_id", "last_name", name=op.f("pk_accepted_resources")),
    )
    op.add_column(
        "progress",
        sa.Column(
            "rollouts",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'[]'"),
            nullable=False,
        ),
    )
