"""The stored bytes of each project, for its quota."""

from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None

CONTENTS = """
INSERT INTO project_content (project_id, hash, size)
SELECT DISTINCT s.project_id, c.hash, octet_length(c.body)
FROM stack s JOIN revision v ON v.stack_id = s.id CROSS JOIN LATERAL (
    SELECT v.template_hash AS hash UNION ALL SELECT decode(f.value, 'hex') FROM jsonb_each_text(v.files) AS f
) AS named JOIN content c ON c.hash = named.hash
ON CONFLICT DO NOTHING
"""
REVISIONS = """
UPDATE revision SET stored_bytes = octet_length(environment::text) + octet_length(files::text)
    + octet_length(parameters::text) + octet_length(outline::text) + coalesce(octet_length(sealed), 0)
    + coalesce((SELECT sum(octet_length(a.entries)) FROM accepted_resources a WHERE a.revision_id = revision.id), 0)
WHERE stored_bytes = 0
"""
SNAPSHOTS = """
UPDATE snapshot SET stored_bytes = coalesce((
    SELECT sum(coalesce(pg_column_size(c.metadata), 0) + coalesce(pg_column_size(c.data), 0)
        + coalesce(pg_column_size(c.sealed), 0) + coalesce(pg_column_size(c.kept), 0))
    FROM resource_snapshot c WHERE c.snapshot_id = snapshot.id), 0)
WHERE stored_bytes = 0
"""


def upgrade() -> None:
    """Add the sizes, with defaults that need no rewrite, and fill them in. Locks of the first statements last
    for a moment only.
    """
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = '5s'")
        op.execute("ALTER TABLE revision ADD COLUMN IF NOT EXISTS stored_bytes bigint NOT NULL DEFAULT 0")
        op.execute("ALTER TABLE snapshot ADD COLUMN IF NOT EXISTS stored_bytes bigint NOT NULL DEFAULT 0")
        op.execute(
            """
            CREATE TABLE IF NOT EXISTS project_content (
                project_id text NOT NULL,
                hash bytea NOT NULL,
                size bigint NOT NULL,
                CONSTRAINT pk_project_content PRIMARY KEY (project_id, hash),
                CONSTRAINT fk_project_content_hash FOREIGN KEY (hash) REFERENCES content (hash)
                    ON DELETE CASCADE
            )
            """
        )
        op.execute("CREATE INDEX IF NOT EXISTS ix_project_content_hash ON project_content (hash)")
        op.execute("RESET lock_timeout")
        op.execute(
            "CREATE INDEX CONCURRENTLY IF NOT EXISTS ix_revision_stored_bytes ON revision (stack_id) INCLUDE (stored_bytes)"
        )
        op.execute(CONTENTS)
        op.execute(REVISIONS)
        op.execute(SNAPSHOTS)
