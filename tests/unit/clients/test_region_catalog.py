"""The addresses of other regions, and the callers and credentials allowed for them, are the operator's
settings.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.clients.region_catalog import NoEndpoint, catalog_of
from orchestrator.config import Settings
from orchestrator.errors import Misconfigured

CATALOG = """
regions:
  north:
    url: https://north.example:8004/v1/
    ca_file: /etc/ssl/north.pem
    projects:
      shop: {{project: shop of the north, token_file: {folder}/token}}
      open: {{project: open}}
  south:
    url: http://south.example/v1
    projects:
      shop: {{project: shop, token: s3cret}}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "token").write_text("from-a-file\n")
    (tmp_path / "catalog.yaml").write_text(CATALOG.format(folder=tmp_path))
    return Settings(catalog_file=tmp_path / "catalog.yaml", region_name="south")


def test_a_project_finds_each_region_as_itself(settings):
    catalog = catalog_of(settings, "shop")
    north, south = catalog.endpoint("north"), catalog.endpoint(None)
    assert (north.url, north.token, north.ca_file) == (
        "https://north.example:8004/v1/shop%20of%20the%20north",
        "from-a-file",
        "/etc/ssl/north.pem",
    )
    assert (south.region, south.url, south.token) == ("south", "http://south.example/v1/shop", "s3cret")
    assert {item.region for item in catalog.everywhere()} == {"north", "south"}


@pytest.mark.parametrize(("project", "region"), [("open", "south"), ("shop", "west"), ("nobody", "north")])
def test_nobody_finds_what_was_not_given_to_them(settings, project, region):
    with pytest.raises(NoEndpoint) as caught:
        catalog_of(settings, project).endpoint(region)
    assert str(caught.value) == f"publicURL endpoint for orchestration service in {region} region not found"


def test_without_a_file_there_is_nothing_where_callers_must_say_who_they_are():
    assert list(catalog_of(Settings(auth="token"), "shop").everywhere()) == []


def test_an_installation_that_asks_nobody_is_its_own_region():
    catalog = catalog_of(Settings(port=8123, auth="none"), "my shop")
    own = catalog.endpoint(None)
    assert (own.region, own.url, own.token) == ("RegionOne", "http://127.0.0.1:8123/v1/my%20shop", "")
    assert [item.region for item in catalog.everywhere()] == ["RegionOne"]
    with pytest.raises(NoEndpoint):
        catalog.endpoint("west")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("regions: []", "regions must be a map"),
        ("region: {}", "catalog has no region; it may have regions"),
        ("regions: {n: {url: 5, projects: {}}}", "regions.n.url must be a string"),
        ("regions: {n: {url: 'ftp://x', projects: {}}}", "regions.n.url must be the http"),
        ("regions: {n: {url: 'http://u:p@x', projects: {}}}", "regions.n.url must be the http"),
        ("regions: {n: {url: 'http://x', project: {}}}", "regions.n has no project; it may have"),
        (
            "regions: {n: {url: 'http://x', projects: {p: {}}}}",
            "regions.n.projects.p.project must be a string",
        ),
        ("regions: {n: {url: 'http://x', projects: {p: {project: q, token_file: /none}}}}", "No such file"),
        ("{", "catalog.yaml is wrong"),
    ],
)
def test_a_file_that_is_wrong_is_the_operators_to_mend(tmp_path, text, why):
    path = tmp_path / "catalog.yaml"
    path.write_text(text)
    with pytest.raises(Misconfigured, match=why):
        catalog_of(Settings(catalog_file=path), "p")
    with pytest.raises(Misconfigured, match=r"none\.yaml cannot be read"):
        catalog_of(Settings(catalog_file=tmp_path / "none.yaml"), "p")
