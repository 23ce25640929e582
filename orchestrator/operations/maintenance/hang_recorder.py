"""Record a hung process and its work: `python -m orchestrator.operations.maintenance.hang_recorder`.

The monitor of the process (`orchestrator/watchdog/monitor.py`) starts this program, with its report as JSON
on the standard input, before it ends the process.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from orchestrator.config import settings
from orchestrator.logs import configure_logs, logger
from orchestrator.store.connections.database import UNREACHABLE, open_database
from orchestrator.store.maintenance import quarantine


def main(report: dict[str, Any]) -> None:
    """Record the report; without a database it is only in the log, and leases that are lost are counted."""
    configure_logs()
    work = [(kind, int(id_)) for kind, _, id_ in (item.partition(" ") for item in report["work"])]
    said = quarantine.Report(report["process"], report["trace"], work, report["certain"], report["position"])
    try:
        with open_database(settings(), "orchestrator-watchdog").connect() as db, db.transaction():
            quarantine.record(db, said)
    except UNREACHABLE as error:
        logger().warning("hang_not_recorded", error=str(error))


if __name__ == "__main__":
    main(json.load(sys.stdin))
