"""Users of stacks at Keystone, and access granted to them."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table, empty."""
    op.create_table(
        "stack_user",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("root_id", sa.BigInteger(), nullable=False),
        sa.Column("resource_id", sa.BigInteger(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("keystone_id", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), server_default="making", nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("tries", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("state IN ('making', 'held', 'going')", name=op.f("ck_stack_user_state_known")),
        sa.CheckConstraint(
            "state <> 'held' OR keystone_id IS NOT NULL", name=op.f("ck_stack_user_held_is_known")
        ),
        sa.CheckConstraint("state = 'held' OR due_at IS NOT NULL", name=op.f("ck_stack_user_looked_after")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_stack_user")),
        sa.UniqueConstraint("name", name=op.f("uq_stack_user_name")),
    )
    op.create_index("ix_stack_user_resource", "stack_user", ["resource_id"])
    op.create_index("ix_stack_user_root", "stack_user", ["root_id"])
    op.create_index(
        "ix_stack_user_due", "stack_user", ["due_at"], postgresql_where=sa.text("due_at IS NOT NULL")
    )
    op.add_column("access", sa.Column("keystone_user", sa.Text(), nullable=True))
    with op.get_context().autocommit_block():
        # An interrupted build leaves an invalid index behind.
        op.drop_index("uq_access_keystone_user", "access", if_exists=True, postgresql_concurrently=True)
        op.create_index(
            "uq_access_keystone_user",
            "access",
            ["keystone_user"],
            unique=True,
            postgresql_where=sa.text("keystone_user IS NOT NULL"),
            postgresql_concurrently=True,
        )
