"""An index of large software configs, for the limit on their bytes per project."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add an index that contains only the configs of more than 64 KiB."""
    op.create_index(
        "ix_software_config_large",
        "software_config",
        ["project_id"],
        postgresql_where=sa.text("octet_length(sealed) > 65536"),
    )
