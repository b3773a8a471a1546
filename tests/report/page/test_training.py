"""The chapter on training: only what was recorded is drawn."""

from typing import Any

from nmt.report.page.template import render
from nmt.report.page.training import training_chapter

TRAIN = {"event": "train", "loss": 5.0, "learning_rate": 1e-4, "tokens_per_second": 900.0}
VALIDATION = {"event": "validation", "loss": 4.0, "bleu": 3.0, "perplexity": 54.6, "seconds": 90}


def chapter(*records: dict[str, Any]) -> str:
    return render("training.html", {"training": training_chapter([*records])})


def at(step: int, record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "step": step}


def test_every_curve_of_a_run_is_drawn() -> None:
    html = chapter(at(10, TRAIN), at(10, VALIDATION), at(20, TRAIN))
    for title in ("Loss", "Validation BLEU", "Learning rate", "Throughput"):
        assert f"<b>{title}</b>" in html
    assert "chrF" not in html


def test_a_run_without_records_says_so() -> None:
    assert "No figures are recorded yet" in chapter()


def test_a_run_that_only_validated_has_its_loss() -> None:
    assert chapter(at(10, VALIDATION)).count("<figure") == 2


def test_of_a_step_validated_twice_the_table_holds_the_later() -> None:
    html = chapter(at(10, VALIDATION), at(10, {**VALIDATION, "bleu": 7.25}))
    rows = html.partition("<tbody>")[2]
    assert rows.count("<tr>") == 1 and "7.25" in rows and "3.00" not in rows and "1.5" in rows


def test_a_return_to_an_earlier_checkpoint_is_told() -> None:
    back = {"event": "roll_back", "step": 30, "to": 20}
    assert "taken back: 30 (to 20)." in chapter(at(10, TRAIN), back)
