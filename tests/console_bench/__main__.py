"""`make bench-ui`: figures and screenshots of the pictures at 10, 10,000 and 1,000,000 resources.

python -m tests.console_bench [--sizes 10,10000] [--screenshots FOLDER] [--bars]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

import psycopg

from tests.console_bench.measure import VIEWS, Figures, chromium, measure, screenshots
from tests.console_bench.rows import write
from tests.console_bench.server import server

SIZES: Final = "10,10000,1000000"
MAX_PICTURE_MILLISECONDS: Final = 1_000
MAX_BYTES_BEFORE_DATA: Final = 150_000
MAX_TASK_MILLISECONDS: Final = 100
HEADINGS: Final = ("view", "resources", "response", "picture", "page", "assets", "data", "longest task")


def main() -> int:
    """Print a line per view and size; return 1 if a bar is missed and bars are requested."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--screenshots", type=Path)
    parser.add_argument("--bars", action="store_true", help="fail if a bar is missed")
    options = parser.parse_args()
    missed = []
    with server() as running, psycopg.connect(running.administrator, autocommit=True) as db:
        stacks = [write(db, int(size)) for size in options.sizes.split(",")]
        with chromium() as browser:
            measure(browser, running.url, stacks[0], "field")  # starts the browser
            print(f"load average {os.getloadavg()[0]:.1f}; the first line of a size reads all rows")
            print("".join(f"{heading:>14}" for heading in HEADINGS))
            for stack in stacks:
                for view in VIEWS:
                    figures = measure(browser, running.url, stack, view)
                    print(_line(figures), flush=True)
                    missed += _missed(figures)
                if options.screenshots:
                    options.screenshots.mkdir(parents=True, exist_ok=True)
                    screenshots(browser, running.url, stack, options.screenshots)
    print("\n".join(missed) or "all bars are met")
    return 1 if missed and options.bars else 0


def _line(figures: Figures) -> str:
    times = (f"{value:.0f} ms" for value in (figures.response, figures.picture))
    sizes = (f"{value / 1_000:.1f} kB" for value in (figures.page, figures.assets, figures.data))
    parts = (figures.view, f"{figures.size:,}", *times, *sizes, f"{figures.longest:.0f} ms")
    return "".join(f"{part:>14}" for part in parts)


def _missed(figures: Figures) -> list[str]:
    """Return the bars that are missed."""
    checks = (
        ("first picture after the response (ms)", figures.picture, MAX_PICTURE_MILLISECONDS),
        ("page and assets (bytes)", figures.page + figures.assets, MAX_BYTES_BEFORE_DATA),
        ("longest task (ms)", figures.longest, MAX_TASK_MILLISECONDS),
    )
    return [
        f"{figures.view} at {figures.size:,}: {name} {value:.0f}, the maximum is {most}"
        for name, value, most in checks
        if value > most
    ]


if __name__ == "__main__":
    sys.exit(main())
