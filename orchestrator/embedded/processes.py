"""What `orchestrator up` runs beside the servers, as data: workers, API, Flower (docs/internals/design.md
"Processes").
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import httpx

from orchestrator.config import PREFIX, Settings
from orchestrator.embedded.process import Child
from orchestrator.embedded.worker_readiness import VARIABLE as READY_VARIABLE
from orchestrator.errors import Misconfigured
from orchestrator.metrics import SHARED

CELERY_APP = "tasks.app"
API_APP = "api.app:create_app()"
API_WORKER = "api.serving.gunicorn_worker.Worker"
API_THREADS = 16  # besides one for each stream of events
KEEP_ALIVE_SECONDS = 75  # a client that asks again and again must not find its connection just closed
PROVIDER_THREADS = 16  # calls in flight to services
WORKER_NICENESS = 5  # on one machine the answer to somebody goes before the work that may follow it
READY_MODULE = "orchestrator.embedded.worker_readiness"


def environment(
    settings: Settings,
    database_url: str,
    broker_url: str,
    keys_file: Path | None,
    figures: Path | None = None,
) -> dict[str, str]:
    """Return what the children find in their environment: ours, with the servers and choices filled in.

    They run in another folder, so relative paths are made absolute. What they count lies in `figures`, a
    folder that is emptied.
    """
    env = {
        name: str(Path(value).absolute()) if name.startswith(PREFIX) and name.endswith("_FILE") else value
        for name, value in os.environ.items()
    }
    if env.get("PYTHONPATH"):
        entries = env["PYTHONPATH"].split(os.pathsep)
        env["PYTHONPATH"] = os.pathsep.join(str(Path(entry).absolute()) for entry in entries)
    env |= {
        f"{PREFIX}DATABASE_URL": database_url,
        f"{PREFIX}BROKER_URL": broker_url,
        f"{PREFIX}HOST": settings.host,
        f"{PREFIX}PORT": str(settings.port),
        f"{PREFIX}DATA_DIR": str(settings.data_dir.absolute()),
        f"{PREFIX}METRICS_PORT": "0",  # the API shows what all of them have counted
    }
    if figures is not None:
        shutil.rmtree(figures, ignore_errors=True)  # of processes that are no more
        figures.mkdir(mode=0o700, parents=True)
        env[SHARED] = str(figures)
    if keys_file is not None:
        env[f"{PREFIX}ENCRYPTION_KEYS_FILE"] = str(keys_file)
    return env


def workers(
    env: Mapping[str, str], run: Path, *, count: int, events: bool, app: str = CELERY_APP
) -> list[Child]:
    """Return `count` single-process workers for checks that call nobody, one with threads for the rest."""
    solo = ("-P", "solo", "-Q", "check,observe,bulk")
    threads = ("-P", "threads", "-c", str(PROVIDER_THREADS), "-Q", "provider")
    kinds = {f"check{number}": solo for number in range(1, count + 1)} | {"provider1": threads}
    return [_worker(name, options, env, run, events=events, app=app) for name, options in kinds.items()]


def api(env: Mapping[str, str], run: Path, settings: Settings, app: str = API_APP) -> Child:
    """Return the API; ready when its health check answers."""
    bind = f"[{settings.host}]" if ":" in settings.host else settings.host
    count = API_THREADS + settings.max_event_streams
    threads = ("-k", API_WORKER, "--threads", str(count), "-w", "1")
    ports = [settings.port] if settings.cfn_port is None else [settings.port, settings.cfn_port]
    binds = (word for port in ports for word in ("-b", f"{bind}:{port}"))
    place = (*binds, "--graceful-timeout", "10", "--no-control-socket")
    logs = ("--logger-class", "api.serving.gunicorn_logging.Logs")
    patience = ("--keep-alive", str(KEEP_ALIVE_SECONDS))
    return Child(
        name="api",
        argv=(sys.executable, "-m", "gunicorn", *threads, *place, *patience, *logs, app),
        env=env,
        cwd=run,
        ready=lambda _pid: _answers(f"{settings.address}/healthcheck"),
        death_signal=signal.SIGQUIT,  # the master takes its worker along, which SIGKILL would leave behind
        stop_seconds=15.0,
    )


def flower(env: Mapping[str, str], run: Path, port: int, app: str = CELERY_APP) -> Child:
    """Return Flower, on loopback, looking only.

    Raises:
        Misconfigured: it is not installed.
    """
    if find_spec("flower") is None:
        raise Misconfigured("Flower is not installed: pip install 'stack-orchestrator[flower]'")
    # args: the resources; kwargs: the root stack
    columns = "--tasks-columns=name,args,kwargs,state,received,runtime,worker,uuid"
    options = ("--address=127.0.0.1", f"--port={port}", "--max-tasks=10000", "--read-only=True", columns)
    return Child(
        name="flower",
        argv=(sys.executable, "-m", "celery", "-A", app, "flower", *options),
        env=env,
        cwd=run,
        ready=lambda _pid: _answers(f"http://127.0.0.1:{port}/healthcheck"),
    )


def _worker(
    name: str, options: tuple[str, ...], env: Mapping[str, str], run: Path, *, events: bool, app: str
) -> Child:
    told = run / f"{name}.ready"
    quiet = ("--without-gossip", "--without-mingle", "--include", READY_MODULE)
    watched = ("-E",) if events else ()
    celery = (
        sys.executable,
        "-m",
        "celery",
        "-A",
        app,
        "--quiet",
        "worker",
    )  # no banner among the lines of the log
    return Child(
        name=name,
        argv=(*celery, *options, "-n", f"{name}@%h", *quiet, *watched),
        # SIGTERM lets what is under way end: a call has a deadline, shorter than this.
        env={**env, READY_VARIABLE: str(told)},
        cwd=run,
        ready=lambda pid: told.exists() and told.read_text() == str(pid),
        niceness=WORKER_NICENESS,
        stop_seconds=30.0,
    )


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, timeout=2.0, trust_env=False).is_success
    except httpx.HTTPError:
        return False
