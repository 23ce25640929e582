"""OS::Glance::WebImage, with a Glance in memory."""

from __future__ import annotations

import pytest

from orchestrator.errors import ProviderConflict, ProviderError
from orchestrator.resources.openstack.glance.web_image import WebImage
from tests.unit.resources.openstack.double_cloud import DoubleCloud, refusal
from tests.unit.resources.openstack.double_glance import DoubleGlance
from tests.unit.resources.openstack.engine_double import Resource

REQUIRED = {"disk_format": "qcow2", "container_format": "bare", "location": "http://x/image"}
ID = "01234567-89ab-cdef-0123-456789abcdef"


@pytest.fixture
def glance() -> DoubleGlance:
    return DoubleGlance()


@pytest.fixture
def double(glance: DoubleGlance) -> DoubleCloud:
    return DoubleCloud(glance=glance)


@pytest.fixture
def make(double):
    def resource(**properties):
        return Resource(WebImage(), double.cloud, **REQUIRED | properties)

    return resource


@pytest.fixture
def made(make):
    def resource(**properties):
        item = make(**properties)
        assert item.create().ready
        return item

    return resource


def test_every_property_reaches_glance(glance, made):
    item = made(
        **{"name": "n", "id": ID, "min_disk": 1, "min_ram": 2, "tags": ["a"], "architecture": "x86_64"},
        **{"kernel_id": ID, "ramdisk_id": ID, "os_distro": "debian", "os_version": "13", "owner": "o"},
        **{"visibility": "public", "extra_properties": {"hw": "x"}},
    )
    image = glance.images[ID]
    given = {name: image[name] for name in item.given if name in image}
    assert given == {
        name: value for name, value in item.given.items() if name not in ("location", "extra_properties")
    }
    assert image["hw"] == "x"
    assert {"location", "members", "active", "extra_properties"}.isdisjoint(image)


def test_its_data_are_imported_from_the_location(glance, double, make):
    item = make()
    item._record(item.kind.create(item.ctx, item.ctx.properties))
    assert item.observe("CREATE").step == "import"
    assert item.settle().ready
    (task,) = glance.tasks[item.physical_id]
    assert task["input"] == {"method": {"name": "web-download", "uri": "http://x/image"}}
    assert double.count("POST", "images", item.physical_id, "import") == 1


def test_an_import_whose_response_was_lost_is_not_repeated(glance, double, make):
    item = make()
    item._record(item.kind.create(item.ctx, item.ctx.properties))
    item.kind.advance(item.ctx, item.physical_id, item.ctx.properties, "import")
    glance.images[item.physical_id]["status"] = "queued"  # the task has not started
    observation = item.observe("CREATE")
    assert (observation.ready, observation.step) == (False, "")


def test_it_is_ready_when_the_import_has_ended(glance, make):
    item = make()
    item._record(item.kind.create(item.ctx, item.ctx.properties))
    glance.images[item.physical_id]["status"] = "active"
    glance.tasks[item.physical_id].append({"status": "processing"})
    assert not item.observe("CREATE").ready
    glance.tasks[item.physical_id][0]["status"] = "success"
    assert item.observe("CREATE").ready


def test_a_failed_import_fails_it_with_glances_reason(glance, make):
    glance.import_error = "404: Not Found"
    observation = make().create()
    assert observation.error == 'Went to status queued due to "404: Not Found"'


def test_a_killed_image_has_failed(glance, made):
    item = made()
    glance.images[item.physical_id]["status"] = "killed"
    assert item.check().error == 'Went to status killed due to "Unknown"'


@pytest.mark.parametrize("status", ["deleted", "pending_delete"])
def test_a_deleted_image_is_absent(glance, made, status):
    item = made()
    glance.images[item.physical_id]["status"] = status
    assert not item.check().exists


def test_a_refused_location_fails_it(double, make):
    text = "URI for web-download does not pass filtering: http://x/image"
    double.faults.append(lambda request: refusal(400, text) if request.path[-1] == "import" else None)
    with pytest.raises(ProviderError, match="does not pass filtering"):
        make().create()


def test_the_image_of_a_lost_response_is_found(made):
    item = made()
    assert item.kind.find(item.ctx, item.ctx.token) == [item.physical_id]
    assert item.kind.find(item.ctx, "other") is None


def test_an_id_in_use_is_a_conflict(made, make):
    made(id=ID)
    with pytest.raises(ProviderConflict):
        make(id=ID).create()


def test_members_follow_the_property_and_those_of_others_are_kept(glance, made):
    item = made(visibility="shared", members=["a", "b"])
    assert glance.members[item.physical_id] == ["a", "b"]
    glance.members[item.physical_id].append("other")
    item.update(members=["b", "c"])
    assert glance.members[item.physical_id] == ["b", "other", "c"]
    glance.members[item.physical_id].remove("c")
    assert item.check().properties["members"] == ["b"]
    item.update(members=None)
    assert glance.members[item.physical_id] == ["other"]


def test_an_inactive_image_is_deactivated_after_its_import(glance, made):
    item = made(active=False)
    assert glance.images[item.physical_id]["status"] == "deactivated"
    item.update(active=True)
    assert glance.images[item.physical_id]["status"] == "active"
    item.update(active=False)
    assert glance.images[item.physical_id]["status"] == "deactivated"
    assert item.check().properties["active"] is False


def test_a_single_request_updates_it(glance, double, made):
    item = made(tags=["a"], architecture="x", os_distro="d", extra_properties={"keep": "1", "drop": "2"})
    glance.images[item.physical_id]["foreign"] = "3"
    item.update(
        tags=None,
        architecture="y",
        os_distro=None,
        protected=True,
        visibility="community",
        owner="o",
        kernel_id=ID,
        ramdisk_id=ID,
        os_version="1",
        extra_properties={"keep": "1", "new": "4"},
    )
    image = glance.images[item.physical_id]
    assert (image["tags"], image["architecture"], image["protected"]) == ([], "y", True)
    assert (image["keep"], image["new"], image["foreign"]) == ("1", "4", "3")
    assert {"drop", "os_distro"}.isdisjoint(image)
    assert double.count("PATCH") == 1


def test_a_difference_is_reported(glance, made):
    item = made(tags=["b", "a"], extra_properties={"x": "1"})
    image = glance.images[item.physical_id]
    image["tags"] = ["a", "b"]
    assert item.check().properties["tags"] == ["b", "a"]
    image.update(tags=["a"], x="2", protected=True)
    observed = item.check().properties
    assert (observed["tags"], observed["extra_properties"], observed["protected"]) == (
        ["a"],
        {"x": "2"},
        True,
    )


@pytest.mark.parametrize("name", ["name", "id", "min_disk", "min_ram", "disk_format", "location"])
def test_other_properties_replace_it(name):
    assert WebImage().change({}, {name: "x"}, frozenset({name})) == "replace"


def test_a_protected_image_is_not_deleted(made):
    item = made(protected=True)
    with pytest.raises(ProviderError, match="is protected and cannot be deleted"):
        item.delete()
    item.update(protected=False)
    item.delete()


def test_show_is_the_image_without_the_token(made):
    shown = made(name="n").show()
    assert (shown["name"], shown["status"]) == ("n", "active")
    assert "orchestrator_token" not in shown


def test_formats_of_amazon_must_match():
    (fault,) = WebImage().validate({"container_format": "ami", "disk_format": "raw"}, 60.0)
    assert fault.message == (
        "Invalid mix of disk and container formats. When setting a disk or container format to one of "
        "'aki', 'ari', or 'ami', the container and disk formats must match."
    )
    assert not WebImage().validate({"container_format": "ami", "disk_format": "ami"}, 60.0)


def test_members_require_a_shared_image():
    (fault,) = WebImage().validate({"members": ["a"], "visibility": "private"}, 60.0)
    assert fault.message == "members property should only be specified for visibility with value shared."
    assert not WebImage().validate({"members": ["a"], "visibility": "shared"}, 60.0)
