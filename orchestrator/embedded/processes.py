"""The child processes of `orchestrator up` other than database and broker: workers, API and Flower.

See docs/internals/design.md "Processes".
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from orchestrator import config
from orchestrator.clients.deadline import is_healthy
from orchestrator.config import PREFIX, Settings
from orchestrator.embedded.forks import socket_path
from orchestrator.embedded.process import Child
from orchestrator.errors import Misconfigured
from orchestrator.metrics import SHARED

CELERY_APP = "tasks.app"
API_APP = "api.app:create_app()"
LOCAL_API_APP = "api.app:create_app(local=True)"  # for a simulated cloud
API_WORKER = "api.serving.gunicorn_worker.Worker"
API_THREADS = 16  # plus a thread for each event stream and for each slow body
KEEP_ALIVE_SECONDS = 75  # longer than the pauses of polling clients, so that they can reuse their connection
PROVIDER_THREADS = 16  # concurrent provider calls of a worker
WORKER_NICENESS = 5  # on a single machine, requests have priority over checks
PROBE_SECONDS = 2.0  # for a health check
READY_MODULE = "orchestrator.embedded.worker_readiness"
READY_VARIABLE = "ORCHESTRATOR_READY_PATH"  # of the file that this module writes; it is not imported here


def environment(
    settings: Settings,
    database_url: str,
    broker_url: str,
    keys_file: Path | None,
    metrics: Path | None = None,
) -> dict[str, str]:
    """Return the environment of the children: that of this process, with the servers and settings.

    Relative paths become absolute, because the children run in a different directory. Their metrics are files
    in `metrics`, a directory that is emptied.
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
        **({} if settings.auth is None else {f"{PREFIX}AUTH": settings.auth}),
        **({} if settings.flower_url is None else {f"{PREFIX}FLOWER_URL": settings.flower_url}),
        f"{PREFIX}DATA_DIR": str(settings.data_dir.absolute()),
        f"{PREFIX}METRICS_ADDRESS": "",  # the API exports the metrics of all processes
    }
    if metrics is not None:
        shutil.rmtree(metrics, ignore_errors=True)  # files of earlier processes
        metrics.mkdir(mode=0o700, parents=True)
        env[SHARED] = str(metrics)
    if keys_file is not None:
        env[f"{PREFIX}ENCRYPTION_KEYS_FILE"] = str(keys_file)
    return env


def fork_server(env: Mapping[str, str], run: Path, *, libraries: bool = False) -> Child:
    """Return the fork server; its socket is in `run`.

    `libraries`: it imports only modules that do not read the settings.
    """
    path = socket_path(run)
    options = ("--libraries",) if libraries else ()
    return Child(
        name="fork-server",
        argv=(sys.executable, "-m", "orchestrator.embedded.fork_server", str(path), *options),
        env=env,
        cwd=run,
        prepare=lambda: path.unlink(missing_ok=True),
        ready=lambda _pid: path.exists(),
        stop_seconds=5.0,
    )


def workers(
    env: Mapping[str, str],
    run: Path,
    *,
    count: int,
    events: bool,
    app: str = CELERY_APP,
    fork_server: Path | None = None,
) -> list[Child]:
    """Return `count` workers for local resources, and a worker with threads for resources at providers."""
    solo = ("-P", "solo", "-Q", "check,bulk")
    threads = ("-P", "threads", "-c", str(PROVIDER_THREADS), "-Q", "provider,observe")
    options = {f"check{number}": solo for number in range(1, count + 1)} | {"provider1": threads}
    made = [_worker(name, chosen, env, run, events=events, app=app) for name, chosen in options.items()]
    return [replace(child, fork_server=fork_server) for child in made]


def api(
    env: Mapping[str, str],
    run: Path,
    settings: Settings,
    app: str = API_APP,
    fork_server: Path | None = None,
) -> Child:
    """Return the API; it is ready when its health check succeeds."""
    bind = f"[{settings.host}]" if ":" in settings.host else settings.host
    count = api_threads(settings)
    threads = ("-k", API_WORKER, "--threads", str(count), "-w", "1")
    ports = [settings.port] if settings.cfn_port is None else [settings.port, settings.cfn_port]
    binds = (argument for port in ports for argument in ("-b", f"{bind}:{port}"))
    listen = (*binds, "--graceful-timeout", "10", "--no-control-socket")
    logs = ("--logger-class", "api.serving.gunicorn_logging.Logs")
    keep_alive = ("--keep-alive", str(KEEP_ALIVE_SECONDS))
    return Child(
        name="api",
        argv=(sys.executable, "-m", "gunicorn", *threads, *listen, *keep_alive, *logs, app),
        env=env,
        cwd=run,
        ready=lambda _pid: is_healthy(f"{settings.address}/healthcheck", PROBE_SECONDS),
        death_signal=signal.SIGQUIT,  # the master process stops its worker; SIGKILL would not
        stop_seconds=15.0,
        fork_server=fork_server,
    )


def api_threads(settings: Settings) -> int:
    """Return the number of threads of an API process."""
    return API_THREADS + settings.max_event_streams + config.MAX_SLOW_BODIES


def flower(env: Mapping[str, str], run: Path, port: int, app: str = CELERY_APP) -> Child:
    """Return Flower, read-only and on loopback.

    Raises:
        Misconfigured: Flower is not installed.
    """
    if find_spec("flower") is None:
        raise Misconfigured("Flower is not installed: pip install 'stack-orchestrator[flower]'")
    # args: the resources; kwargs: the root stack
    columns = "--tasks-columns=name,args,kwargs,state,received,runtime,worker,uuid"
    config = Path(__file__).with_name("flower_config.py")
    listen = ("--address=127.0.0.1", f"--port={port}", f"--conf={config}")
    options = (*listen, "--max-tasks=10000", "--read-only=True", columns)
    return Child(
        name="flower",
        argv=(sys.executable, "-m", "celery", "-A", app, "flower", *options),
        env=env,
        cwd=run,
        ready=lambda _pid: is_healthy(f"http://127.0.0.1:{port}/healthcheck", PROBE_SECONDS),
    )


def _worker(
    name: str, options: tuple[str, ...], env: Mapping[str, str], run: Path, *, events: bool, app: str
) -> Child:
    ready_file = run / f"{name}.ready"
    quiet = ("--without-gossip", "--without-mingle", "--include", READY_MODULE)
    task_events = ("-E",) if events else ()
    celery = (sys.executable, "-m", "celery", "-A", app, "--quiet", "worker")  # quiet: no banner in the log
    return Child(
        name=name,
        argv=(*celery, *options, "-n", f"{name}@%h", *quiet, *task_events),
        # SIGTERM ends the worker after its current messages; the deadline of a provider call is shorter.
        env={**env, READY_VARIABLE: str(ready_file)},
        cwd=run,
        ready=lambda pid: ready_file.exists() and ready_file.read_text() == str(pid),
        niceness=WORKER_NICENESS,
        stop_seconds=30.0,
    )
