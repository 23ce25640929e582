"""Selection of Heat's tests, and their results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from qa.conformance.server import REGION, Ports

NO_HARNESS = """\
no harness in {place}: Heat's own tests are run by a folder with `run.sh` and `public.sh` in it, which is no
part of this repository. Put it there, or name it: make conformance CONFORMANCE_DIR=…"""


@dataclass(frozen=True, slots=True)
class Harness:
    """The folder that runs the tests."""

    place: Path

    def fault(self) -> str | None:
        """Return why it cannot be used."""
        existing = all((self.place / name).is_file() for name in ("run.sh", "public.sh"))
        return None if existing else NO_HARNESS.format(place=self.place)

    def command(self, endpoint: Path, out: Path, ids: Path | None, tests: Sequence[str]) -> list[str]:
        """Return the command: for the tests listed in `ids`, or with a word of `tests` in their names, or for
        the published list.
        """
        if ids is None and not tests:
            return [str(self.place / "public.sh"), str(endpoint), "--out", str(out)]
        listed = ["--ids", str(ids), "--all"] if ids is not None else []
        return [str(self.place / "run.sh"), str(endpoint), *tests, *listed, "--out", str(out)]

    def identity(self, venv: Path, ports: Ports) -> list[str]:
        """Return the command of the stand-in for Keystone, in the environment that `run.sh` creates on first
        use.
        """
        return [
            *(str(venv / "bin" / "python"), str(self.place / "standin_identity.py")),
            *("--port", str(ports.identity), "--region", REGION),
            *("--heat-url", f"{ports.api_url}/{{project_id}}"),
        ]


def not_passed(results: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each test that did not pass: its name, how it ended, the last thing said."""
    for test in results["tests"]:
        if test["result"] != "pass":
            said = [line.strip() for line in test["why"].splitlines() if line.strip()]
            yield f"{test['id']} {test['result']}: {said[-1] if said else 'nothing said'}"
