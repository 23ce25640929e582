"""`make bench-ui`: figures of the pictures at 10, 10,000 and 1,000,000 resources, a watched stack that
changes, and screenshots of every view.

python -m qa.console_bench [--sizes 10,10000] [--watch SECONDS] [--screenshots FOLDER] [--bars]
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

import httpx
import psycopg

from orchestrator.embedded.postgres import DATABASE
from qa.console_bench import gallery
from qa.console_bench.measure import VIEWS, Figures, chromium, measure, screenshots
from qa.console_bench.rows import PROJECT, write
from qa.console_bench.server import database, server
from qa.console_bench.watch import Watched, watch

SIZES: Final = "10,10000,1000000"
MAX_PICTURE_MILLISECONDS: Final = 1_000
MAX_BYTES_BEFORE_DATA: Final = 150_000
MAX_TASK_MILLISECONDS: Final = 100
MAX_DELAY_SECONDS: Final = 1.0
MAX_CORE_PER_VIEWER: Final = 0.01
MAX_HEAP_GROWTH: Final = 0.02
WATCHED_SIZE: Final = 100_000
HEADINGS: Final = (
    "view",
    "resources",
    "response",
    "picture",
    "complete",
    "again",
    "page",
    "assets",
    "data",
    "longest task",
)


def main() -> int:
    """Print a line per view and size; return 1 if a bar is missed and bars are requested."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--watch", type=float, default=600.0, help="seconds; 0: no watched stack")
    parser.add_argument("--screenshots", type=Path)
    parser.add_argument("--bars", action="store_true", help="fail if a bar is missed")
    options = parser.parse_args()
    missed = []
    with database() as postgres, psycopg.connect(postgres.administrator_url(DATABASE), autocommit=True) as db:
        stacks = [write(db, int(size)) for size in options.sizes.split(",")]
        with chromium() as browser:
            with server(postgres) as running:
                measure(browser, running.url, stacks[0], "field")  # starts the browser
            print(f"load average {os.getloadavg()[0]:.1f}; each view is opened in a new API process")
            print("".join(f"{heading:>12}" for heading in HEADINGS))
            for stack in stacks:
                for view in VIEWS:
                    with server(postgres) as running:
                        httpx.get(f"{running.url}/ui/{PROJECT}/stacks", timeout=60.0)  # loads modules
                        figures = measure(browser, running.url, stack, view)
                    print(_line(figures), flush=True)
                    missed += _missed(figures)
                if options.screenshots:
                    options.screenshots.mkdir(parents=True, exist_ok=True)
                    with server(postgres) as running:
                        screenshots(browser, running.url, stack, options.screenshots)
            if options.watch:
                with server(postgres) as running:
                    watched = watch(browser, running, write(db, WATCHED_SIZE), options.watch)
                print("\n".join(watched.lines()), flush=True)
                missed += _missed_while_watching(watched)
            if options.screenshots:
                with gallery.installation() as installation:
                    gallery.screenshots(browser, installation, options.screenshots)
    print("\n".join(missed) or "all bars are met")
    return 1 if missed and options.bars else 0


def _line(figures: Figures) -> str:
    times = (
        f"{value:.0f} ms" for value in (figures.response, figures.picture, figures.complete, figures.again)
    )
    sizes = (f"{value / 1_000:.1f} kB" for value in (figures.page, figures.assets, figures.data))
    parts = (figures.view, f"{figures.size:,}", *times, *sizes, f"{figures.longest:.0f} ms")
    return "".join(f"{part:>12}" for part in parts)


def _missed(figures: Figures) -> list[str]:
    """Return the bars that are missed."""
    checks = (
        ("first picture after the response (ms)", figures.picture, MAX_PICTURE_MILLISECONDS),
        ("first picture of a second viewer (ms)", figures.again, MAX_PICTURE_MILLISECONDS),
        ("page and assets (bytes)", figures.page + figures.assets, MAX_BYTES_BEFORE_DATA),
        ("longest task (ms)", figures.longest, MAX_TASK_MILLISECONDS),
    )
    return [
        f"{figures.view} at {figures.size:,}: {name} {value:.0f}, the maximum is {most}"
        for name, value, most in checks
        if value > most
    ]


def _missed_while_watching(watched: Watched) -> list[str]:
    """Return the bars that are missed while the stack changes."""
    checks = (
        ("delay until a change is shown (s)", max(watched.delays), MAX_DELAY_SECONDS),
        ("share of a core per viewer", watched.core_per_viewer, MAX_CORE_PER_VIEWER),
        *(
            (f"share of a core per viewer of {page}", share, MAX_CORE_PER_VIEWER)
            for page, share in watched.core_per_page.items()
        ),
        ("growth of the heap", watched.heap_growth, MAX_HEAP_GROWTH),
        ("longest task (ms)", watched.longest, MAX_TASK_MILLISECONDS),
    )
    return [
        f"watched: {name} {value:.3f}, the maximum is {most}" for name, value, most in checks if value > most
    ]


if __name__ == "__main__":
    sys.exit(main())
