"""Event sinks of environments are webhooks; requests with a client token are accepted once; failed creates
are deleted; nested stacks are found by name.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

INDEXES = (
    ("ix_stack_nested_name", ["project_id", "name"], "deleted_at IS NULL AND owner_id IS NOT NULL"),
    (
        "ix_stack_user_project",
        ["user_project_id", "name"],
        "deleted_at IS NULL AND user_project_id IS NOT NULL",
    ),
)


def upgrade() -> None:
    """Add columns and a table, then build the indexes concurrently. Existing webhooks belong to no sink."""
    op.add_column(
        "webhook", sa.Column("of_environment", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.drop_constraint(op.f("ck_webhook_state_known"), "webhook")
    op.create_check_constraint(
        op.f("ck_webhook_state_known"), "webhook", "state IN ('active', 'dead', 'off')"
    )
    op.create_table(
        "client_request",
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("token", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("stack_uuid", sa.UUID(), nullable=False),
        sa.Column("stack_name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "token", name=op.f("pk_client_request")),
    )
    op.create_index("ix_client_request_created", "client_request", ["created_at"])
    op.add_column(
        "stack",
        sa.Column("delete_on_failure", sa.Boolean(), server_default=sa.text("false"), nullable=False),
    )
    with op.get_context().autocommit_block():
        # An interrupted build leaves an invalid index behind.
        for name, columns, where in INDEXES:
            op.drop_index(name, "stack", if_exists=True, postgresql_concurrently=True)
            op.create_index(
                name, "stack", columns, postgresql_where=sa.text(where), postgresql_concurrently=True
            )
