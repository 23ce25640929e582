"""Hints name another word, never the word that was used."""

from __future__ import annotations

import pytest

from orchestrator.errors import did_you_mean
from orchestrator.template.diagnostics import Hints


@pytest.mark.parametrize("hint", [did_you_mean, Hints().near])
def test_a_hint_never_suggests_the_name_that_was_used(hint):
    assert hint("server", ["server"]) == ""
    assert hint("server", ["server", "servers"]) == 'did you mean "servers"?'
