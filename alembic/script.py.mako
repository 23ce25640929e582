"""${message}."""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Works with the code already running: add, backfill, switch; remove in a later one."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Go forward instead: restore a backup, or write the next migration."""
    raise NotImplementedError
