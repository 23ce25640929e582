"""Record the settings of a stack with its revision."""

from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the settings, and fill in those of desired revisions. Older revisions have none: a rollback to them
    leaves the settings of the stack. The lock of the first statement lasts for a moment only.
    """
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = '5s'")
        op.execute("ALTER TABLE revision ADD COLUMN IF NOT EXISTS settings jsonb")  # interrupted before
        op.execute("RESET lock_timeout")
        op.execute(
            """
            UPDATE revision v SET settings = jsonb_build_object('disable_rollback', s.disable_rollback,
                'keep_going', s.keep_going, 'resume', s.resume, 'tags', s.tags,
                'timeout_mins', s.timeout_mins)
            FROM stack s
            WHERE s.revision_id = v.id AND s.owner_id IS NULL AND s.deleted_at IS NULL
                AND v.settings IS NULL
            """
        )
