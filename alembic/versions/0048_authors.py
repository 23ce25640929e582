"""Record the author of a revision, and the credential that its content runs with."""

import sqlalchemy as sa
from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

HELD = sa.text("state = 'held'")


def upgrade() -> None:
    """Add the columns. Existing revisions have no author: they run with the present credential of their stack,
    which the first update by another user records. A stack may hold several credentials from now on. Each lock
    lasts for a moment only.
    """
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = '5s'")
        for table, column in (
            ("revision", "author jsonb"),
            ("revision", "credential_id bigint"),
            ("stack", "credential_id bigint"),
            ("stack", "operation_credential_id bigint"),
            ("observation_pass", "credential_id bigint"),
            ("credential", "roles text[]"),
        ):
            op.execute(f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {column}")  # interrupted before
        op.execute("RESET lock_timeout")
        op.drop_index(
            "ix_credential_held", "credential", if_exists=True, postgresql_concurrently=True
        )  # interrupted before
        op.create_index(
            "ix_credential_held",
            "credential",
            ["stack_id"],
            postgresql_where=HELD,
            postgresql_concurrently=True,
        )
        op.drop_index("uq_credential_held", "credential", if_exists=True, postgresql_concurrently=True)
