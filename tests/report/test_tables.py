import numpy as np

from nmt.data.quality import Quality, describe_side
from nmt.evaluation.compare import compare
from nmt.evaluation.test_sets import EvaluationSet
from nmt.report.tables import render_comparison, render_quality

REFERENCES = ["the cat sat on the mat.", "a dog barks at me.", "word " * 40 + "end."]
GOOD = ["the cat sat on the mat.", "the dog barks at me.", "word " * 40 + "."]
POOR = ["the cat is on it.", "a dog barks at me.", ""]


def test_it_fits_a_terminal_and_holds_every_part() -> None:
    against = EvaluationSet("mine.de", REFERENCES, ["one", "two", "three"])
    text = render_comparison(compare([("runs/good", GOOD), ("poor.txt", POOR)], against))
    assert max(map(len, text.split("\n"))) <= 100
    parts = text.split("\n\n")
    assert parts[0].startswith("3 sentences of mine.de\n")
    rows = [line.split()[:2] for line in parts[0].split("\n")[1:4]]
    assert rows == [["BLEU", "chrF++"], ["A", "runs/good"], ["B", "poor.txt"]]
    assert parts[1].startswith("A ")
    titles = [part[:12] for part in parts[2:5]]
    assert titles == ["BLEU by the ", "BLEU by how ", "F-score of w"]
    assert "Sentences where A stands out most, by chrF++\nline 3 (A 9" in text
    assert "  source     three\n  reference  word word" in text
    assert "  B          (nothing)" in text
    assert "Sentences where B stands out most, by chrF++\nline 2 (" in text


def test_several_pairs_and_what_a_terminal_would_take_for_a_command() -> None:
    odd = ["the cat\x1b[31m sat\u2028on \xa0 the mat.", *POOR[1:]]
    against = EvaluationSet("mine.de", REFERENCES)
    systems = [("good", GOOD), ("odd", odd), ("best", REFERENCES)]
    text = render_comparison(compare(systems, against))
    assert "  B          the cat\ufffd[31m sat on   the mat.\n" in text
    assert "(With 3 pairs, p has to be below 0.05 / 3.)" in text and "source" not in text
    assert "stands out" not in render_comparison(compare(systems, against, examples=0))


def test_the_longest_bar_of_a_histogram_has_40_characters() -> None:
    side = describe_side("en", np.array([4, 4, 9, 9, 9, 9, 9]))
    counts = {"read": 7, "kept": 7, "dropped": {}, "examples": {}}
    text = render_quality(Quality(counts, side, side, {1: 0.5, 50: 1.1, 99: 2.0}, leaks=[]))
    assert [line.count("█") for line in text.split("\n") if "█" in line] == [16, 40, 16, 40]
    names = ["sentence length in tokens, source", "sentence length in tokens, target"]
    assert all(name in text for name in names)  # where both sides are in the same languages
