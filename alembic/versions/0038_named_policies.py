"""Policies of the observation with a name, to which environments refer."""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

OBJECT = "uq_observation_rule_object"
OPEN = sa.text("kind = 'policy' AND ended_at IS NULL")
COLUMNS = ["project_id", sa.text("coalesce(stack_id, 0)"), "type", "resource"]


def upgrade() -> None:
    """Add the name to the object of a policy."""
    op.add_column("observation_rule", sa.Column("name", sa.Text(), server_default="", nullable=False))
    op.create_check_constraint(
        op.f("ck_observation_rule_name_is_the_object"),
        "observation_rule",
        "name = '' OR (kind = 'policy' AND stack_id IS NULL AND type = '' AND resource = '')",
    )
    op.drop_index(OBJECT, "observation_rule")
    op.create_index(OBJECT, "observation_rule", [*COLUMNS, "name"], unique=True, postgresql_where=OPEN)


def downgrade() -> None:
    """Remove policies with a name."""
    op.execute("DELETE FROM observation_rule WHERE name <> ''")
    op.drop_index(OBJECT, "observation_rule")
    op.create_index(OBJECT, "observation_rule", COLUMNS, unique=True, postgresql_where=OPEN)
    op.drop_constraint(op.f("ck_observation_rule_name_is_the_object"), "observation_rule", type_="check")
    op.drop_column("observation_rule", "name")
