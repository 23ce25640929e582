"""Circuit breakers of services, and stacks that continue after an outage."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the table; add the columns, whose defaults need no rewrite."""
    op.create_table(
        "circuit_breaker",
        sa.Column("project_id", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("failures", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("last_error", sa.Text(), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("since", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("probes", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("probe_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("probing_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("stacks", sa.ARRAY(sa.BigInteger()), server_default=sa.text("'{}'"), nullable=False),
        sa.CheckConstraint(
            "(opened_at IS NULL) = (probe_at IS NULL)", name=op.f("ck_circuit_breaker_open_has_a_probe")
        ),
        sa.PrimaryKeyConstraint("project_id", "service", name=op.f("pk_circuit_breaker")),
        postgresql_with={"fillfactor": "50"},
    )
