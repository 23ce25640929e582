"""An outage that is shorter than the stack's timeout delays an operation, and changes nothing else.

Each scenario runs in a root stack, a child stack and both kinds of groups. The outage lasts for more attempts
than `action_retry_limit` permits for other failures.
"""

from __future__ import annotations

from tests.noisy.project import Project
from tests.noisy.templates import CHILD, GROUP, ROOT, SCALING_GROUP, Place, in_places, network, server, volume

ATTEMPTS = 7  # during an outage; the retry limit is 5


def test_a_create_continues_after_an_outage(project: Project, place: Place) -> None:
    """Each server is created by a single request, after the outage."""
    with project.cloud.outage("compute"):
        project.create("s", **place.body())
        project.cloud.await_calls("", "busy", ATTEMPTS)
        assert project.status("s") == "CREATE_IN_PROGRESS"
    project.settle("s", "CREATE_COMPLETE")
    assert len(project.cloud.objects()) == place.count
    assert project.cloud.performed("create") == place.count
    assert project.cloud.performed("delete") == 0


def test_an_update_continues_after_an_outage(project: Project, place: Place) -> None:
    """Every server is updated in place by a single request; none is replaced."""
    project.created("s", **place.body("a"))
    before = project.cloud.ids()
    with project.cloud.outage("compute"):
        project.update("s", **place.body("b"))
        project.cloud.await_calls("", "busy", ATTEMPTS)
        assert project.status("s") == "UPDATE_IN_PROGRESS"
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids(label="b") == before
    assert project.cloud.performed("create") == place.count
    assert project.cloud.performed("update") == place.count


@in_places(ROOT, SCALING_GROUP)
def test_a_replacement_continues_after_an_outage(project: Project, place: Place) -> None:
    """Each server is replaced once, and deleted once."""
    project.created("s", **place.body(flavor="small"))
    with project.cloud.outage("compute"):
        project.update("s", **place.body(flavor="large"))
        project.cloud.await_calls("", "busy", ATTEMPTS)
    project.settle("s", "UPDATE_COMPLETE")
    assert len(project.cloud.ids(flavor="large")) == len(project.cloud.objects()) == place.count
    assert project.cloud.performed("create") == 2 * place.count
    assert project.cloud.performed("delete") == place.count


def test_a_delete_continues_after_an_outage(project: Project, place: Place) -> None:
    """Each server is deleted by a single request."""
    project.created("s", **place.body())
    with project.cloud.outage("compute"):
        project.delete("s")
        project.cloud.await_calls("delete", "busy", ATTEMPTS)
        assert project.status("s") == "DELETE_IN_PROGRESS"
    project.settle("s", "GONE")
    assert not project.cloud.objects()
    assert project.cloud.performed("delete") == place.count


def test_a_rollback_continues_after_an_outage(project: Project, place: Place) -> None:
    """A rollback returns every server to its former label; none is replaced."""
    project.created("s", **place.body("a"))
    before, body = project.cloud.ids(), place.body("b")
    project.cloud.fault("refuse", "create", services=["storage"])
    outage = project.cloud.fault("busy", "update", label="b")  # refuses the way back only
    body["resources"]["bad"] = volume() | {"depends_on": place.resource}
    project.update("s", **body, disable_rollback=False)
    project.cloud.await_calls("update", "busy", ATTEMPTS)
    assert project.status("s") == "ROLLBACK_IN_PROGRESS"
    project.cloud.clear(outage)
    project.settle("s", "ROLLBACK_COMPLETE")
    assert project.cloud.ids(label="a") == before
    assert project.cloud.performed("create", service="compute") == place.count
    assert project.cloud.performed("delete", service="compute") == 0


def test_a_rollback_of_a_create_continues_after_an_outage(project: Project) -> None:
    """A failed create deletes its objects, once the service is reachable."""
    project.cloud.fault("refuse", "create", services=["storage"])
    outage = project.cloud.fault("busy", "delete", services=["compute"])
    resources = {"server": server(), "bad": volume() | {"depends_on": "server"}}
    project.create("s", resources, disable_rollback=False)
    project.cloud.await_calls("delete", "busy", ATTEMPTS)
    project.cloud.clear(outage)
    project.settle("s", "ROLLBACK_COMPLETE")
    assert not project.cloud.objects()
    assert project.cloud.performed("delete", service="compute") == 1


@in_places(ROOT, GROUP)
def test_a_converge_during_an_outage_destroys_nothing(project: Project, place: Place) -> None:
    """An update with `converge` waits for the service, and keeps every healthy server."""
    project.created("s", **place.body())
    before = project.cloud.ids()
    with project.cloud.outage("compute"):
        project.patch("s", converge=True)
        project.cloud.await_calls("show", "busy", ATTEMPTS)
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids() == before
    assert project.cloud.performed("create") == place.count


@in_places(CHILD, SCALING_GROUP)
def test_an_outage_while_a_server_boots_needs_no_second_create(project: Project, place: Place) -> None:
    """A created server that cannot be observed is observed again, and not created again."""
    project.cloud.fault("hold", "create")
    project.create("s", **place.body())
    servers = project.cloud.await_objects(place.count, "BUILD")
    with project.cloud.outage("compute"):
        project.cloud.await_calls("show", "busy", ATTEMPTS)
        for item in servers:
            project.cloud.finish(item["id"])
    project.settle("s", "CREATE_COMPLETE")
    assert project.cloud.performed("create") == place.count
    assert project.cloud.performed("delete") == 0


def test_an_outage_between_an_update_and_its_result_needs_no_replacement(project: Project) -> None:
    """An update that was performed without an answer is completed after the outage."""
    project.created("s", {"server": server("a")})
    before = project.cloud.ids()
    project.cloud.fault("silent", "update", times=1)
    outage = project.cloud.fault("busy", label="b")  # from the moment of the change
    project.update("s", {"server": server("b")})
    project.cloud.await_calls("", "busy", ATTEMPTS)
    project.cloud.clear(outage)
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids(label="b") == before


@in_places(ROOT, GROUP)
def test_requests_without_an_answer_have_a_single_effect(project: Project, place: Place) -> None:
    """Creates that were performed, and creates that were lost, result in a single object each."""
    project.cloud.fault("silent", "create", times=place.count)
    project.created("s", **place.body())
    assert project.cloud.performed("create") == len(project.cloud.objects()) == place.count
    project.cloud.fault("silent", "delete")
    project.delete("s")
    project.settle("s", "GONE")
    assert not project.cloud.objects()


def test_creates_that_are_lost_are_repeated(project: Project) -> None:
    """A create without effect and without an answer is sent again until the service performs it."""
    project.cloud.fault("lost", "create", times=6)
    project.created("s", {"server": server()})
    assert project.cloud.performed("create") == len(project.cloud.objects()) == 1


def test_an_exhausted_quota_is_retried(project: Project) -> None:
    """A create waits for quota, and the reason for the wait is shown."""
    quota = project.cloud.fault("quota", "create")
    project.create("s", {"server": server()})
    project.cloud.await_calls("create", "quota", ATTEMPTS)
    (waiting,) = project.why("s")["waiting"]
    assert "quota" in waiting["last_error"]
    project.cloud.clear(quota)
    project.settle("s", "CREATE_COMPLETE")
    assert project.cloud.performed("create") == 1


def test_exceptions_of_sockets_are_an_outage(project: Project) -> None:
    """`ConnectionError` and `TimeoutError` mean unreachable: the type need not translate them."""
    with project.cloud.outage("network"):
        project.create("s", {"net": network("a")})
        project.cloud.await_calls("", "busy", ATTEMPTS)
    project.settle("s", "CREATE_COMPLETE")
    before = project.cloud.ids("network")
    with project.cloud.outage("network", effect="lost"):
        project.update("s", {"net": network("b")})
        project.cloud.await_calls("update", "lost", ATTEMPTS)
    project.settle("s", "UPDATE_COMPLETE")
    assert project.cloud.ids("network", label="b") == before


def test_an_outage_affects_only_the_resources_of_its_service(project: Project) -> None:
    """Resources of other services are completed during the outage."""
    resources = {"server": server(), "disk": volume(), "net": network()}
    with project.cloud.outage("compute"):
        project.create("s", resources)
        project.cloud.until(lambda: _complete(project) == {"disk", "net"})
        project.cloud.await_calls("", "busy", ATTEMPTS)
    project.settle("s", "CREATE_COMPLETE")


def test_an_outage_during_the_cleanup_delays_the_update(project: Project) -> None:
    """A removed resource is deleted once, after the outage, in a root stack and in a child stack."""
    for place in (ROOT, CHILD):
        name = place.name
        project.created(name, **place.body())
        mark = project.cloud.mark
        outage = project.cloud.fault("busy", "delete")
        project.update(name, {})
        project.cloud.await_calls("delete", "busy", ATTEMPTS, since=mark)
        project.cloud.clear(outage)
        project.settle(name, "UPDATE_COMPLETE")
        assert not project.cloud.objects()
        assert project.cloud.performed("delete", since=mark) == 1


def test_an_outage_costs_one_call_at_a_time(project: Project) -> None:
    """After the first failures a single resource calls the service; all continue with the first answer."""
    resources = {f"server{number}": server() for number in range(12)}
    with project.cloud.outage("compute"):
        project.create("s", resources)
        project.cloud.await_calls("", "busy", 20)  # some of them before the breaker opened in each process
        mark = project.cloud.mark
        calls = project.cloud.await_calls("", "busy", 6, since=mark)
        times = [call["at"] for call in calls[:6]]
        assert times[-1] - times[0] > 0.5  # twelve resources with pauses of 0.4 s at most would need 0.2 s
    project.settle("s", "CREATE_COMPLETE")
    assert project.cloud.performed("create") == len(project.cloud.objects()) == 12


def _complete(project: Project) -> set[str]:
    statuses = project.statuses("s")
    return {name for name, status in statuses.items() if status == "CREATE_COMPLETE"}
