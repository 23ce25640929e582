"""Record the answers of a real control plane, in the folder `tests`: `python -m parity.record [NAME...]`.

Requires `OS_AUTH_URL` and `OS_PASSWORD`, the password of `admin` and `demo`. The recordings are committed, so
that the comparison needs no real cloud.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Final

from parity.calls import Cloud, run
from parity.comparison import recorded

FOLDER: Final = Path(__file__).with_name("recordings")
SCENARIOS: Final = ("keystone", "neutron", "neutron_extra", "glance", "cinder", "nova", "octavia")


def main(names: list[str]) -> None:
    """Record scenarios, all by default."""
    FOLDER.mkdir(exist_ok=True)
    for name in names or SCENARIOS:
        calls = importlib.import_module(f"parity.{name}_calls").CALLS
        cloud = Cloud(os.environ["OS_AUTH_URL"], os.environ["OS_PASSWORD"])
        answers = [recorded(call, answer) for call, answer in run(cloud, calls)]
        lines = ",\n".join(json.dumps(answer, sort_keys=True) for answer in answers)
        (FOLDER / f"{name}.json").write_text(f"[\n{lines}\n]\n")
        print(f"{name}: {len(answers)} answers")


if __name__ == "__main__":
    main(sys.argv[1:])
