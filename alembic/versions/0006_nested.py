"""CHECK of a nested stack is an operation of its resource in the parent."""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

OPERATIONS = "VALUE IN ('CREATE', 'UPDATE', 'DELETE', 'DISCARD', 'SUSPEND', 'RESUME', 'SNAPSHOT', 'CHECK')"


def upgrade() -> None:
    """Extend the values of the domain."""
    op.execute("ALTER DOMAIN resource_op DROP CONSTRAINT resource_op_known")
    op.execute(f"ALTER DOMAIN resource_op ADD CONSTRAINT resource_op_known CHECK ({OPERATIONS})")
