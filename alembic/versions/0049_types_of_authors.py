"""Record with each revision which governed types its author may not use."""

from alembic import op

revision = "0049"
down_revision = "0048"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column. Older revisions have no record: the roles of their authors are not known. The lock lasts
    for a moment only.
    """
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = '5s'")
        op.execute("ALTER TABLE revision ADD COLUMN IF NOT EXISTS denied_types text[]")  # interrupted before
        op.execute("RESET lock_timeout")
