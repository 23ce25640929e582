"""The texts of the statements that a visit runs and that end a stack, as they are sent to PostgreSQL.

`python tests/golden/test_sql.py` renews them; then review the difference.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.store.nodes import action_sql, hook_sql, outcome_sql, replacement_sql, visit_sql
from orchestrator.store.nodes.outcome_builder import OutcomeStatement, render
from orchestrator.store.traversals import child_completion, children, completion, stack_end

HERE = Path(__file__).parent / "sql"
OUTCOMES = (*outcome_sql.STATEMENTS, *action_sql.STATEMENTS, replacement_sql.SETTLE_INLINE_REPLACEMENT)
SINGLE_ROW = (hook_sql.SETTLE_PAUSED, hook_sql.DELETE_PAUSED, children.WAIT_FOR_NEW_CHILD)
OTHERS = {
    "begin": outcome_sql.BEGIN,
    "begin_step": outcome_sql.BEGIN_STEP,
    "claim": visit_sql.CLAIM,
    "drop": outcome_sql.DROP,
    "drop_unclaimed": outcome_sql.DROP_UNCLAIMED,
    "pause_claimed": hook_sql.PAUSE_CLAIMED,
    "pause_unclaimed": hook_sql.PAUSE_UNCLAIMED,
    "read_claimed": visit_sql.READ_CLAIMED,
    "read_for_adoption": visit_sql.READ_FOR_ADOPTION,
    "read_queued": visit_sql.READ_QUEUED,
    "read_queued_one": visit_sql.READ_QUEUED_ONE,
    "read_with_operation_inputs": visit_sql.READ_WITH_OPERATION_INPUTS,
    "separate": visit_sql.SEPARATE,
    "settle_clean_nodes": outcome_sql.SETTLE_CLEAN_NODES,
    "settle_nodes": outcome_sql.SETTLE_NODES,
    "wake_newer_traversals": outcome_sql.WAKE_NEWER_TRAVERSALS,
}


def forms(statement: OutcomeStatement) -> Iterator[tuple[str, str]]:
    for leased, claim in ((True, "leased"), (False, "unleased")):
        yield f"{statement.name}.{claim}.one", render(statement, leased=leased, rows="one")
        if statement not in SINGLE_ROW:
            yield f"{statement.name}.{claim}.many", render(statement, leased=leased, rows="many")


ENDS = (completion.COMPLETE, completion.END_FAILED, child_completion.COMPLETE_CHILD)
TEXTS = {
    **{name: text for statement in (*OUTCOMES, *SINGLE_ROW) for name, text in forms(statement)},
    **{end.name: stack_end.render(end) for end in ENDS},
    **OTHERS,
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_of_a_statement_changes_only_on_purpose(name: str) -> None:
    assert f"{TEXTS[name].strip()}\n" == (HERE / f"{name}.sql").read_text()


def test_every_golden_text_is_of_a_statement() -> None:
    assert {path.stem for path in HERE.glob("*.sql")} == TEXTS.keys()


def test_a_name_identifies_a_single_statement() -> None:
    statements = (*OUTCOMES, *SINGLE_ROW)
    assert len({statement.name for statement in statements}) == len(statements)


if __name__ == "__main__":
    HERE.mkdir(exist_ok=True)
    for path in HERE.glob("*.sql"):
        path.unlink()
    for name, text in TEXTS.items():
        (HERE / f"{name}.sql").write_text(f"{text.strip()}\n")
