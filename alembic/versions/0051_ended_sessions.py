"""Sessions of the console that were ended by signing out."""

import sqlalchemy as sa
from alembic import op

revision = "0051"
down_revision = "0050"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add a table."""
    op.create_table(
        "ended_session",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("length(digest) = 32", name=op.f("ck_ended_session_digest_is_sha256")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ended_session")),
        sa.UniqueConstraint("digest", name=op.f("uq_ended_session_digest")),
    )
    op.create_index("ix_ended_session_ends", "ended_session", ["ends_at"])
