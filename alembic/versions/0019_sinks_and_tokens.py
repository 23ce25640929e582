"""Event sinks of environments are webhooks; requests with a token are accepted once; failed creates are deleted."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add columns and a table; webhooks made before are nobody's event sinks."""
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
