"""Objects that notifications name, and the intervals of policies."""

import sqlalchemy as sa
from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

GROUP = "observation_group"


def upgrade() -> None:
    """Add a table, a kind of group and a column."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "observation_notice",
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("physical_id", sa.Text(), nullable=False),
        sa.Column("noted_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "physical_id", name=op.f("pk_observation_notice")),
    )
    op.drop_constraint(op.f("ck_observation_group_kind_known"), GROUP, type_="check")
    op.drop_constraint(op.f("ck_observation_group_discovery_has_no_service"), GROUP, type_="check")
    op.create_check_constraint(
        op.f("ck_observation_group_kind_known"),
        GROUP,
        "kind IN ('discovery', 'notified', 'lists', 'single')",
    )
    op.create_check_constraint(
        op.f("ck_observation_group_project_has_no_service"),
        GROUP,
        "(kind IN ('discovery', 'notified')) = (service = '')",
    )
    op.add_column("observation_rule", sa.Column("interval_seconds", sa.Double(), nullable=True))
    op.create_check_constraint(
        op.f("ck_observation_rule_interval_of_a_policy"),
        "observation_rule",
        "interval_seconds IS NULL OR kind = 'policy'",
    )
