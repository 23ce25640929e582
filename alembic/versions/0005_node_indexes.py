"""Find a node by its resource; paused nodes use the index of nodes in progress."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

AT_WORK = "state IN ('checking', 'waiting', 'paused')"


def upgrade() -> None:
    """Build the new indexes concurrently, then drop the old indexes."""
    with op.get_context().autocommit_block():
        for name, columns, where in (
            ("ix_graph_node_visit", ["stack_id", "traversal", "kind", "resource_id"], None),
            ("ix_graph_node_at_work", ["stack_id", "resource_id"], sa.text(AT_WORK)),
        ):
            # An interrupted build leaves an invalid index behind.
            op.drop_index(name, "graph_node", if_exists=True, postgresql_concurrently=True)
            op.create_index(name, "graph_node", columns, postgresql_concurrently=True, postgresql_where=where)
        for name in ("ix_graph_node_stack", "ix_graph_node_active"):
            op.drop_index(name, "graph_node", if_exists=True, postgresql_concurrently=True)
