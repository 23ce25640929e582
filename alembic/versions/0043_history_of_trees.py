"""List the ended verdicts of a tree of stacks."""

from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

NAME = "ix_verdict_history_root"


def upgrade() -> None:
    """Add the root stack, fill it in, and build its index concurrently. Each statement is a transaction: the lock
    of the first lasts for a moment only.
    """
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = '5s'")
        op.execute(
            "ALTER TABLE verdict_history ADD COLUMN IF NOT EXISTS root_id bigint"
        )  # interrupted before
        op.execute("RESET lock_timeout")
        op.execute(
            "UPDATE verdict_history h SET root_id = s.root_id FROM stack s WHERE s.id = h.stack_id"
            " AND h.root_id IS NULL"
        )
        # An interrupted build leaves an invalid index behind.
        op.drop_index(NAME, "verdict_history", if_exists=True, postgresql_concurrently=True)
        op.create_index(NAME, "verdict_history", ["root_id", "id"], postgresql_concurrently=True)
