"""The words of drift states: IN_SYNC, MODIFIED, MISSING, FAILED, UNKNOWN."""

from alembic import op

revision = "0056"
down_revision = "0053"
branch_labels = None
depends_on = None

WORDS = {
    "in_step": "IN_SYNC",
    "changed": "MODIFIED",
    "missing": "MISSING",
    "failed": "FAILED",
    "unknown": "UNKNOWN",
}
STATES = "'IN_SYNC', 'MODIFIED', 'MISSING', 'FAILED'"


def upgrade() -> None:
    """Replace the words and the constraints on them."""
    op.execute("SET LOCAL lock_timeout = '5s'")
    for name in ("verdict_known", "deviates"):
        op.execute(f"ALTER TABLE resource_verdict DROP CONSTRAINT ck_resource_verdict_{name}")
    op.execute("ALTER TABLE verdict_history DROP CONSTRAINT ck_verdict_history_verdict_known")
    words = " ".join(f"WHEN '{before}' THEN '{after}'" for before, after in WORDS.items())
    for table in ("resource_verdict", "verdict_history", "repair"):
        op.execute(f"UPDATE {table} SET verdict = CASE verdict {words} ELSE verdict END")  # noqa: S608
    op.create_check_constraint(
        op.f("ck_resource_verdict_verdict_known"), "resource_verdict", f"verdict IN ({STATES})"
    )
    op.create_check_constraint(
        op.f("ck_resource_verdict_deviates"),
        "resource_verdict",
        "verdict <> 'IN_SYNC' OR unknown_since IS NOT NULL",
    )
    op.create_check_constraint(
        op.f("ck_verdict_history_verdict_known"), "verdict_history", f"verdict IN ({STATES}, 'UNKNOWN')"
    )
