"""Continuous observation: groups of resources, verdicts and their history."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import ARRAY, JSONB

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add tables."""
    op.create_table(
        "observation_group",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("region", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("types", ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("rung_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lease", sa.BigInteger(), nullable=True),
        sa.Column("leased_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("interval_seconds", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("after_id", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("round_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("previous_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("seconds", sa.Double(), nullable=True),
        sa.Column("objects", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("calls", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("rounds", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("failing_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failing_reason", sa.Text(), nullable=True),
        sa.Column("credential_id", sa.BigInteger(), nullable=True),
        sa.Column("loss_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("lost", sa.Integer(), nullable=True),
        sa.Column("lost_of", sa.Integer(), nullable=True),
        sa.Column("loss_approved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("loss_approved_by", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(lease IS NULL) = (leased_until IS NULL)", name=op.f("ck_observation_group_lease_has_an_end")
        ),
        sa.CheckConstraint(
            "(failing_since IS NULL) = (failing_reason IS NULL)",
            name=op.f("ck_observation_group_failing_has_a_reason"),
        ),
        sa.CheckConstraint(
            "kind IN ('discovery', 'lists', 'single')", name=op.f("ck_observation_group_kind_known")
        ),
        sa.CheckConstraint(
            "(kind = 'discovery') = (service = '')",
            name=op.f("ck_observation_group_discovery_has_no_service"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_observation_group")),
        sa.UniqueConstraint(
            "project_id",
            "region",
            "service",
            "kind",
            name=op.f("uq_observation_group_project_id_region_service_kind"),
        ),
        postgresql_with={"fillfactor": "50"},
    )
    op.create_index("ix_observation_group_due", "observation_group", ["due_at"])
    op.create_table(
        "observation_fault",
        sa.Column("root_id", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("tried_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("root_id", name=op.f("pk_observation_fault")),
    )
    op.create_index("ix_observation_fault_project", "observation_fault", ["project_id"])
    op.create_table(
        "resource_verdict",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("resource_id", sa.BigInteger(), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("root_id", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("group_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("confirmed", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("differences", JSONB(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
        sa.Column("unknown_since", sa.DateTime(timezone=True), nullable=True),
        sa.Column("unknown_reason", sa.Text(), nullable=True),
        sa.Column("physical_id", sa.Text(), nullable=False),
        sa.Column("observed_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint(
            "verdict IN ('in_step', 'changed', 'missing', 'failed')",
            name=op.f("ck_resource_verdict_verdict_known"),
        ),
        sa.CheckConstraint(
            "(unknown_since IS NULL) = (unknown_reason IS NULL)",
            name=op.f("ck_resource_verdict_unknown_has_a_reason"),
        ),
        sa.CheckConstraint(
            "verdict <> 'in_step' OR unknown_since IS NOT NULL", name=op.f("ck_resource_verdict_deviates")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_resource_verdict")),
        sa.UniqueConstraint("resource_id", name=op.f("uq_resource_verdict_resource_id")),
    )
    op.create_index("ix_resource_verdict_group", "resource_verdict", ["group_id", "resource_id"])
    op.create_index("ix_resource_verdict_project", "resource_verdict", ["project_id", "resource_id"])
    op.create_index("ix_resource_verdict_root", "resource_verdict", ["root_id"])
    op.create_index("ix_resource_verdict_stack", "resource_verdict", ["stack_id"])
    op.create_table(
        "verdict_history",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("fault_id", sa.BigInteger(), nullable=False),
        sa.Column("resource_id", sa.BigInteger(), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("differences", JSONB(), server_default=sa.text("'[]'"), nullable=False),
        sa.Column("physical_id", sa.Text(), nullable=False),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "verdict IN ('in_step', 'changed', 'missing', 'failed', 'unknown')",
            name=op.f("ck_verdict_history_verdict_known"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_verdict_history")),
    )
    op.create_index("ix_verdict_history_ended", "verdict_history", ["ended_at"])
    op.create_index("ix_verdict_history_project", "verdict_history", ["project_id", "id"])
    op.create_index("ix_verdict_history_stack", "verdict_history", ["stack_id", "id"])
