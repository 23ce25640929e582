"""The repair that the next visit of a resource carries out: `resource.repair`."""

from alembic import op

revision = "0057"
down_revision = "0056"
branch_labels = None
depends_on = None

MARKS = """
UPDATE resource SET repair = CASE observed
    WHEN 'absent' THEN '{"cause": "MISSING", "action": "recreate", "properties": []}'::jsonb
    WHEN 'error' THEN '{"cause": "FAILED", "action": "replace", "properties": []}'::jsonb
    WHEN 'recoverable' THEN '{"cause": "FAILED", "action": "recover", "properties": []}'::jsonb
    ELSE jsonb_build_object('cause', 'MODIFIED', 'action', 'update',
        'properties', to_jsonb(string_to_array(coalesce(observed_reason, ''), ', '))) END
WHERE observed IN ('absent', 'error', 'recoverable', 'changed')
"""
# Marks were no results of an observation.
OBSERVED = """
UPDATE resource SET observed = 'ready', observed_reason = NULL WHERE observed IN ('recoverable', 'changed')
"""


def upgrade() -> None:
    """Add the column, and take the marks over."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    op.execute("ALTER TABLE resource ADD COLUMN repair jsonb")
    op.execute(MARKS)
    op.execute(OBSERVED)
