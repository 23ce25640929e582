"""Send every template of a corpus to `POST /validate` and compare the answers with Heat's.

    python -m qa.corpus [DIRECTORY]      the directory holds `expected.json` and `templates/`

Every template is sent unchanged (strict) and with `ignore_errors=99001` (lenient), with its files, as the
command line client sends them. The lenient status must equal Heat's; the strict status only if every type of
the template and of its nested templates is implemented here. Exits with 1 at a difference.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from orchestrator.cli.exit_codes import Failure
from orchestrator.cli.template_files.load import Source, read_template, request_body
from orchestrator.errors import OrchestratorError
from orchestrator.template.parse import Limits, parse
from tests.e2e.running import Up

DEFAULT = Path(__file__).parents[3] / "shared" / "corpus"
LENIENT = {"ignore_errors": "99001"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, and the message of a refusal."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Score:
    """A template: Heat's answer, ours, and its unimplemented types."""

    name: str
    expected: Mapping[str, int]
    answers: Mapping[str, Answer]
    missing: frozenset[str]

    def differences(self) -> Iterator[str]:
        """Yield the differences."""
        for mode in ("lenient", "strict"):
            if mode == "strict" and self.missing:
                continue
            expected, got = self.expected[mode], self.answers[mode]
            if got.status != expected:
                yield f"{self.name} {mode}: {got.status} where Heat answers {expected}: {got.message}"


def types_in(texts: Iterator[str]) -> Iterator[str]:
    """Yield the types that the resources of some templates have."""
    for text in texts:
        try:
            document = parse(text, Limits())
        except OrchestratorError:
            continue
        resources = document.get("resources") or document.get("Resources") or {}
        for body in resources.values() if isinstance(resources, dict) else ():
            kind = body.get("type") or body.get("Type") if isinstance(body, dict) else None
            if isinstance(kind, str):
                yield kind


def judge(client: httpx.Client, root: Path, row: Mapping[str, Any], recorded: frozenset[str]) -> Score:
    """Send a template both ways."""
    path = root / row["template"]
    try:
        source = read_template(path)
        body = request_body(source, [], {})
    except Failure:  # a file that it names is not in the collection: Heat was asked without any
        source = Source(path, path.read_text(), {})
        body = {"template": source.text}
    answers = {}
    for mode, query in (("strict", {}), ("lenient", LENIENT)):
        response = client.post("/validate", params=query, json=body)
        message = "" if response.is_success else response.json()["error"]["message"]
        answers[mode] = Answer(response.status_code, message)
    used = set(types_in(iter([source.text, *source.files.values()])))
    nested = (".yaml", ".template")
    missing = frozenset(kind for kind in used if kind not in recorded and not kind.endswith(nested))
    return Score(row["template"], row, answers, missing)


def main(directory: Path) -> int:
    """Run the corpus; return the exit status."""
    expected = json.loads((directory / "expected.json").read_text())["templates"]
    with tempfile.TemporaryDirectory(prefix="corpus-") as data:
        up = Up(Path(data)).wait_ready()
        try:
            with httpx.Client(base_url=f"{up.url}/v1/corpus", timeout=60.0) as client:
                recorded = frozenset(client.get("/resource_types").json()["resource_types"])
                scores = [judge(client, directory / "templates", row, recorded) for row in expected]
        finally:
            up.stop()
    differences = [line for score in scores for line in score.differences()]
    own_items = [score for score in scores if not score.missing]
    same = {
        mode: sum(score.answers[mode].status == score.expected[mode] for score in among)
        for mode, among in (("lenient", scores), ("strict", own_items))
    }
    print(f"{len(scores)} templates; {len(own_items)} use only types that are here")
    print(f"lenient: {same['lenient']} of {len(scores)} as Heat answers")
    print(f"strict, of those: {same['strict']} of {len(own_items)} as Heat answers")
    for line in differences:
        print(f"  {line}")
    return 1 if differences else 0


if __name__ == "__main__":
    chosen = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(os.environ.get("CORPUS_DIR", DEFAULT))
    if not (chosen / "expected.json").exists():
        sys.exit(f"no corpus in {chosen}: name its directory in CORPUS_DIR")
    sys.exit(main(chosen))
