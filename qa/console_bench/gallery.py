"""Screenshots of every view, of real stacks on the simulated cloud."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx
from playwright.sync_api import Browser, Page

from orchestrator.embedded import simulated_cloud
from qa.console_bench.measure import screens, wait_drawn
from tests.e2e.running import Up, eventually, free_ports

USER: Final = "demo"  # and the name of its project
EXAMPLES: Final = Path(__file__).resolve().parents[2] / "examples"
PATIENCE_SECONDS: Final = 180.0
END: Final = ("COMPLETE", "FAILED")

# The failed stack: the cause is three nested stacks below.
NESTED: Final = {
    "region.yaml": {"zone": "zone.yaml"},
    "zone.yaml": {"rack": "rack.yaml"},
}
RACK: Final = """\
heat_template_version: 2021-04-16
description: A server with its disk.
resources:
  network:
    type: OS::Heat::RandomString
  disk:
    type: OS::Heat::TestResource
    depends_on: network
    properties:
      fail: true
  server:
    type: OS::Heat::TestResource
    depends_on: disk
"""

# Of the stacks `shop` (complete), `region` (failed) and `queue` (in progress).
VIEWS: Final = {
    "overview": "/",
    "stacks": "/stacks",
    "create": "/create",
    "repairs": "/repairs",
    "summary": "{shop}",
    "summary-in-progress": "{queue}",
    "summary-failed": "{region}",
    "field": "{shop}/field",
    "map": "{shop}/map",
    "timeline": "{shop}/timeline",
    "history": "{shop}/history?step=40",
    "resources": "{shop}/resources",
    "resource": "{shop}/resources/web_group?levels=2",
    "events": "{shop}/events",
    "failures": "{region}/failures",
    "drift": "{shop}/drift",
    "outputs": "{shop}/outputs",
    "template": "{shop}/template",
    "revisions": "{shop}/revisions",
    "revision": "{shop}/revisions/1",
    "diff": "{shop}/diff?before=1&after=2",
    "update": "{shop}/actions/update",
    "plan": "{shop}/actions/update",
    "delete": "{shop}/actions/delete",
    "not-found": "{shop}/resources/unknown",
}


@dataclass(frozen=True, slots=True)
class Installation:
    """A running installation, and the paths of its stacks below the project."""

    url: str
    project: str  # id
    stacks: Mapping[str, str]
    password: str = field(repr=False)

    def address(self, view: str) -> str:
        """Return the address of a view."""
        return f"{self.url}/ui/{self.project}{VIEWS[view].format(**self.stacks)}"


@contextmanager
def installation() -> Iterator[Installation]:
    """Keep an installation with stacks in several states running for a block."""
    with tempfile.TemporaryDirectory(prefix="console-gallery-") as folder:
        port = free_ports(simulated_cloud.PORTS)
        up = Up(Path(folder) / "data", options=("--cloud", "simulated", "--cloud-port", str(port)))
        try:
            up.wait_ready()
            with httpx.Client(timeout=60.0) as api:
                project, compute = _sign_in(api, port, password := simulated_cloud.kept_password(up.data_dir))
                api.base_url = httpx.URL(f"{up.url}/v1/{project}")
                yield Installation(up.url, project, _stacks(api, compute), password)
        finally:
            up.stop()


def _sign_in(api: httpx.Client, port: int, password: str) -> tuple[str, str]:
    """Use a token of the user `demo`; return the id of the project, and the address of Nova."""
    domain = {"name": "Default"}
    user = {"name": USER, "password": password, "domain": domain}
    identity = {"methods": ["password"], "password": {"user": user}}
    body = {"auth": {"identity": identity, "scope": {"project": {"name": USER, "domain": domain}}}}
    answer = api.post(f"{simulated_cloud.auth_url(port)}/auth/tokens", json=body).raise_for_status()
    api.headers["X-Auth-Token"] = answer.headers["X-Subject-Token"]
    token = answer.json()["token"]
    [compute] = [service for service in token["catalog"] if service["type"] == "compute"]
    return token["project"]["id"], compute["endpoints"][0]["url"]


def _stacks(api: httpx.Client, compute: str) -> dict[str, str]:
    """Create the stacks; return their paths."""
    template = (EXAMPLES / "three-tier.yaml").read_text()
    files = {"three-tier-server.yaml": (EXAMPLES / "three-tier-server.yaml").read_text()}
    shop = _create(api, "shop", template, files)
    region = _create(api, "region", *_nested())
    queue = _create(api, "queue", (EXAMPLES / "waiting.yaml").read_text())
    eventually(lambda: _has_ended(api, shop) and _has_ended(api, region), PATIENCE_SECONDS)
    body = {"template": template, "files": files, "parameters": {"web_count": 3}, "tags": "blue,production"}
    api.put(shop, json=body).raise_for_status()
    eventually(lambda: _has_ended(api, shop), PATIENCE_SECONDS)
    [server, *_] = api.get(f"{compute}/servers").json()["servers"]
    api.delete(f"{compute}/servers/{server['id']}").raise_for_status()
    eventually(lambda: api.get("/observations").json()["observations"], PATIENCE_SECONDS)
    return {"shop": shop, "region": region, "queue": queue}


def _nested() -> tuple[str, dict[str, str]]:
    """Return a template with three levels of nested stacks, and its files."""
    files = {"rack.yaml": RACK}
    files |= {name: _template(resources) for name, resources in NESTED.items()}
    return _template({"region": "region.yaml"}), files


def _template(resources: Mapping[str, str]) -> str:
    snippets = (f"  {name}:\n    type: {type_}\n" for name, type_ in resources.items())
    return f"heat_template_version: 2021-04-16\nresources:\n{''.join(snippets)}"


def _create(api: httpx.Client, name: str, template: str, files: Mapping[str, str] | None = None) -> str:
    body = {"stack_name": name, "template": template, "files": dict(files or {}), "tags": "blue"}
    answer = api.post("/stacks", json=body).raise_for_status()
    return f"/stacks/{name}/{answer.json()['stack']['id']}"


def _has_ended(api: httpx.Client, path: str) -> bool:
    status: str = api.get(path).raise_for_status().json()["stack"]["stack_status"]
    return not status.endswith("IN_PROGRESS")


def screenshots(browser: Browser, running: Installation, folder: Path) -> int:
    """Write a picture of each view, screen and theme; return their number."""
    count = 0
    for page, screen in screens(browser):
        page.goto(running.address("overview"))
        page.screenshot(path=folder / f"sign-in-{screen}.png")
        _fill_sign_in(page, running.password)
        for view in VIEWS:
            _open(page, running, view)
            page.screenshot(path=folder / f"{view}-{screen}.png", full_page=True)
            count += 1
    return count


def _fill_sign_in(page: Page, password: str) -> None:
    for label, text in (("User", USER), ("Password", password), ("Project", USER)):
        page.get_by_label(label, exact=True).fill(text)
    page.get_by_role("button", name="Sign in with a password").click()


def _open(page: Page, running: Installation, view: str) -> None:
    page.goto(running.address(view))
    wait_drawn(page, view)
    if view == "plan":
        page.get_by_label("Parameters").fill("web_count=4")
        page.get_by_role("button", name="Preview").click()
        page.locator("#plan").wait_for()
