"""The start of a process imports no library that it does not use."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import sys
import gc
import api.app, tasks.app
from orchestrator.gc_policy import THRESHOLD
unused = {"rich", "pygments", "openstack", "keystoneauth1", "yaql", "alembic", "jsonschema", "networkx"}
assert not unused & set(sys.modules), unused & set(sys.modules)
assert gc.get_threshold()[0] == THRESHOLD
import structlog, rich, pygments
assert structlog.dev.ConsoleRenderer()(None, "info", {"event": "shown", "key": 1})
"""


def test_workers_and_the_api_import_only_libraries_that_they_use() -> None:
    """Each import costs processor time at every start; libraries remain available for later imports."""
    env = {**os.environ, "ORCHESTRATOR_BROKER_URL": "redis://localhost:1/0"}
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, check=False, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
