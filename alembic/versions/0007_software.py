"""Software configs, deployments, and credentials of their agents."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "software_config",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("uuid", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("group", sa.Text(), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("secret", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("derived", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_software_config")),
        sa.UniqueConstraint("uuid", name=op.f("uq_software_config_uuid")),
    )
    op.create_index("ix_software_config_project", "software_config", ["project_id", "created_at", "id"])
    op.create_table(
        "software_deployment",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("uuid", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("server_id", sa.Text(), nullable=False),
        sa.Column("config_id", sa.BigInteger(), nullable=False),
        sa.Column("action", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=True),
        sa.Column("status_reason", sa.Text(), nullable=True),
        sa.Column("stack_user_project_id", sa.Text(), nullable=True),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("secret", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("stack_id", sa.BigInteger(), nullable=True),
        sa.Column("resource_id", sa.BigInteger(), nullable=True),
        sa.Column("operation", sa.Text(), nullable=True),
        sa.Column("server_noted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["config_id"], ["software_config.id"], name=op.f("fk_software_deployment_config_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_software_deployment")),
        sa.UniqueConstraint("uuid", name=op.f("uq_software_deployment_uuid")),
    )
    op.create_index("ix_software_deployment_server", "software_deployment", ["project_id", "server_id"])
    op.create_index("ix_software_deployment_config_id", "software_deployment", ["config_id"])
    op.create_table(
        "software_agent",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("uuid", sa.UUID(), nullable=False),
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("is_server", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_software_agent")),
        sa.UniqueConstraint("uuid", name=op.f("uq_software_agent_uuid")),
    )
