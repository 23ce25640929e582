"""Repairs of failed objects by their types."""

from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Allow the action `recover`."""
    op.drop_constraint(op.f("ck_repair_action_known"), "repair", type_="check")
    op.create_check_constraint(
        op.f("ck_repair_action_known"), "repair", "action IN ('update', 'recover', 'recreate', 'replace')"
    )


def downgrade() -> None:
    """Remove the action."""
    op.execute("UPDATE repair SET action = 'replace' WHERE action = 'recover'")
    op.drop_constraint(op.f("ck_repair_action_known"), "repair", type_="check")
    op.create_check_constraint(
        op.f("ck_repair_action_known"), "repair", "action IN ('update', 'recreate', 'replace')"
    )
