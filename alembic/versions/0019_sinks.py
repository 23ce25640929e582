"""Event sinks of environments are webhooks."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; webhooks made before are nobody's event sinks."""
    op.add_column(
        "webhook", sa.Column("of_environment", sa.Boolean(), server_default=sa.text("false"), nullable=False)
    )
    op.drop_constraint(op.f("ck_webhook_state_known"), "webhook")
    op.create_check_constraint(
        op.f("ck_webhook_state_known"), "webhook", "state IN ('active', 'dead', 'off')"
    )
