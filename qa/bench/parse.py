"""Cost of reading a large YAML template: time against the bare events of libyaml, memory against the text.

Each round is a separate process, `python -m qa.bench.parse FILE`, so that no memory is shared between
rounds. It times both in sequence.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson
import yaml

from orchestrator.template.parse import Limits, parse
from qa.bench.processes import MB, forget_peak, peak_memory

RESOURCES = 20_000
ROUNDS = 3
WARM = b"resources: {a: {type: T, properties: {n: 1, b: true}}}"
TREE = Path(__file__).resolve().parents[2]
LIMIT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ParseRun:
    """A round."""

    text_bytes: int
    events_seconds: float  # of libyaml's parser alone
    parse_seconds: float
    peak_bytes: float | None  # memory of the document beyond the text; None if it cannot be measured

    @property
    def times_events(self) -> float:
        """Time of the document over that of its events."""
        return self.parse_seconds / self.events_seconds

    @property
    def times_text(self) -> float | None:
        """Memory over the size of the text."""
        return None if self.peak_bytes is None else self.peak_bytes / self.text_bytes

    def __str__(self) -> str:
        """Return the round as a line of text."""
        memory = "-" if self.times_text is None else f"{self.times_text:.1f}"
        return (
            f"parse {self.text_bytes / MB:.1f} MB of YAML: {self.parse_seconds:.2f} s, "
            f"{self.times_events:.2f} times its events; {memory} times its size in memory"
        )


def yaml_text(resources: int) -> bytes:
    """Return a template as people write them, some 250 bytes a resource."""
    parts = ["heat_template_version: 2021-04-16\ndescription: Many resources\n\nresources:\n"]
    parts += [
        f"""\
  resource_{number}:
    type: OS::Heat::TestResource
    depends_on: [resource_{max(number - 2, 0)}]
    properties:
      value:
        str_replace:
          template: made of $before
          params: {{$before: {{get_resource: resource_{max(number - 1, 0)}}}}}
      wait_secs: {number}
      fail: false
"""
        for number in range(resources)
    ]
    return "".join(parts).encode()


def measure_parse(resources: int = RESOURCES) -> ParseRun:
    """Measure a round, in a separate process."""
    with tempfile.TemporaryDirectory(prefix="orchestrator-bench-") as folder:
        file = Path(folder, "template.yaml")
        file.write_bytes(yaml_text(resources))
        done = subprocess.run(
            [sys.executable, "-m", "qa.bench.parse", str(file)],
            cwd=TREE,
            stdout=subprocess.PIPE,
            timeout=LIMIT_SECONDS,
            check=True,
        )
    return ParseRun(**orjson.loads(done.stdout))


def main(file: Path) -> None:
    """Measure here and print the figures."""
    text = file.read_bytes()
    parse(WARM, Limits())
    forget_peak(os.getpid())
    before = peak_memory(os.getpid())
    document = parse(text, Limits())
    after = peak_memory(os.getpid())
    del document
    peak = None if before is None or after is None else (after - before) * MB
    events_seconds, parse_seconds = _timed(lambda: _events(text)), _timed(lambda: parse(text, Limits()))
    run = ParseRun(len(text), events_seconds, parse_seconds, peak)
    sys.stdout.buffer.write(orjson.dumps(asdict(run)))


def _events(text: bytes) -> None:
    for _ in yaml.parse(text, Loader=yaml.CSafeLoader):
        pass


def _timed(work: Callable[[], object]) -> float:
    started_at = time.perf_counter()
    work()
    return time.perf_counter() - started_at


if __name__ == "__main__":
    main(Path(sys.argv[1]))
