"""The legacy `heat` command, which scripts of old still call."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients.stock import Answer, Openstack
from tests.e2e.running import eventually


class Heat:
    """The `heat` command of a user in a project."""

    def __init__(self, openstack: Openstack) -> None:
        self.openstack = openstack

    def run(self, command: str, *arguments: str | Path) -> Answer:
        who = ["--os-no-client-auth", "--heat-url", self.openstack.endpoint, "--os-auth-token", "any"]
        return self.openstack.driver.run("heat", [*who, *command.split(), *map(str, arguments)])

    def __call__(self, command: str, *arguments: str | Path) -> str:
        """Run a command that succeeds; return its output."""
        answer = self.run(command, *arguments)
        assert answer.status == 0, answer
        return answer.out


@pytest.fixture
def heat(openstack: Openstack) -> Heat:
    return Heat(openstack)


def test_the_old_commands_carry_a_stack_through_its_life(heat: Heat, template: Path) -> None:
    assert "second" in heat("stack-preview -P value=old one -f", template)
    printed = heat("stack-create -P value=old --tags red --poll 1 one -f", template)
    assert "[one]: CREATE_COMPLETE  Stack CREATE completed successfully" in printed
    assert "CREATE_COMPLETE" in heat("stack-list")
    assert "| stack_name " in heat("stack-show one")
    heat("stack-update -P value=new one -f", template)
    eventually(lambda: "UPDATE_COMPLETE" in heat("stack-list"))
    assert heat("output-show one it").strip() == "new"
    assert "OS::Heat::TestResource" in heat("resource-list one")
    assert "short" not in heat("resource-show one second")
    assert "Stack UPDATE started" in heat("event-list one")
    heat("action-check one")
    eventually(lambda: "CHECK_COMPLETE" in heat("stack-list"))
    assert '"Two of them"' in heat("template-show one") + heat("template-validate -f", template)
    heat("stack-delete -y one")
    eventually(lambda: "one" not in heat("stack-list"))


def test_the_old_command_reports_why_it_failed(heat: Heat) -> None:
    for command, reported in {
        "stack-show nope": "Stack not found: nope",
        "output-show nope it": "Stack nope or output it not found.",
        "stack-delete -y nope": "The Stack (nope) could not be found.",
    }.items():
        answer = heat.run(command)
        assert answer.status == 1
        assert reported in answer.out + answer.err
