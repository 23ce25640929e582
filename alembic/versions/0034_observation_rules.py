"""Policies, pauses and accepted differences of the observation."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import UUID

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table."""
    op.create_table(
        "observation_rule",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("uuid", UUID(as_uuid=True), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=True),
        sa.Column("type", sa.Text(), server_default="", nullable=False),
        sa.Column("resource", sa.Text(), server_default="", nullable=False),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("path", sa.Text(), server_default="", nullable=False),
        sa.Column("reason", sa.Text(), server_default="", nullable=False),
        sa.Column("starts_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ends_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("repeats", sa.Text(), server_default="", nullable=False),
        sa.Column("created_by", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_by", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "kind IN ('policy', 'pause', 'accept')", name=op.f("ck_observation_rule_kind_known")
        ),
        sa.CheckConstraint(
            "mode IN ('off', 'report', 'heal', 'ask')", name=op.f("ck_observation_rule_mode_known")
        ),
        sa.CheckConstraint(
            "repeats IN ('', 'daily', 'weekly')", name=op.f("ck_observation_rule_repetition_known")
        ),
        sa.CheckConstraint(
            "(kind = 'policy') = (mode IS NOT NULL)", name=op.f("ck_observation_rule_policy_has_a_mode")
        ),
        sa.CheckConstraint(
            "(kind = 'accept') = (path <> '')", name=op.f("ck_observation_rule_acceptance_has_a_path")
        ),
        sa.CheckConstraint(
            "kind <> 'pause' OR (ends_at IS NOT NULL AND reason <> '')",
            name=op.f("ck_observation_rule_pause_ends"),
        ),
        sa.CheckConstraint(
            "(ended_at IS NULL) = (ended_by IS NULL)", name=op.f("ck_observation_rule_end_has_an_author")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_observation_rule")),
        sa.UniqueConstraint("uuid", name=op.f("uq_observation_rule_uuid")),
    )
    op.create_index("ix_observation_rule_project", "observation_rule", ["project_id", "id"])
    op.create_index("ix_observation_rule_stack", "observation_rule", ["stack_id"])
    op.create_index(
        "ix_observation_rule_ended",
        "observation_rule",
        ["ended_at"],
        postgresql_where=sa.text("ended_at IS NOT NULL"),
    )
    op.create_index(
        "uq_observation_rule_object",
        "observation_rule",
        ["project_id", sa.text("coalesce(stack_id, 0)"), "type", "resource"],
        unique=True,
        postgresql_where=sa.text("kind = 'policy' AND ended_at IS NULL"),
    )
