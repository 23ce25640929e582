"""Access of resources to their stack, watchers of signals, and signals from the engine to resources."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables and the column."""
    op.create_table(
        "access",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("secret", sa.LargeBinary(), nullable=True),
        sa.Column("token_hash", sa.LargeBinary(), nullable=True),
        sa.Column("user_name", sa.Text(), nullable=True),
        sa.Column("policies", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.CheckConstraint("(key IS NULL) = (secret IS NULL)", name=op.f("ck_access_key_has_a_secret")),
        sa.CheckConstraint("length(token_hash) = 32", name=op.f("ck_access_hash_is_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access")),
        sa.UniqueConstraint("key", name=op.f("uq_access_key")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_access_token_hash")),
    )
    op.create_index("ix_access_user", "access", ["stack_id", "user_name"])
    op.create_table(
        "watcher",
        sa.Column("resource_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("watcher_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("resource_id", "watcher_id", name=op.f("pk_watcher")),
    )
    op.create_index("ix_watcher_watcher_id", "watcher", ["watcher_id"])
    op.create_index("ix_watcher_stack_id", "watcher", ["stack_id"])
    op.add_column("signal", sa.Column("about", sa.Text(), nullable=True))
