"""Which translation a search under constraints prefers, by models small enough to compute by hand.

In the tables, "" is the beginning and "." the end of a translation. A token without a probability
has `RARE`, which is too little to matter.
"""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

import numpy as np
import pytest

from nmt.data.text.parallel_text import SentencePair
from nmt.data.tokens.tokenizer import BOS, EOS, UNK
from nmt.data.tokens.vocabulary import learn_vocabulary
from nmt.recipe.config import DecodingConfig, TokenizerConfig
from nmt.run.checkpoint_files import Array
from nmt.search.constrained_search import choose, constrained_search
from nmt.search.constrained_sentence import ConstrainedSentence
from nmt.search.lexical_constraints import LexicalConstraints, SpelledConstraints, Spelling
from nmt.search.sentence_search import Candidates, SentenceSearch
from nmt.search.step_decoder import NextScores, StepRows

Table = Mapping[str, Mapping[str, float]]
WORDS = "a b c d e x y z"
RARE = 1e-9


def spelling_of_words() -> Spelling:
    config = TokenizerConfig(kind="word", vocabulary_size=12)  # 8 words and 4 special tokens
    return Spelling(learn_vocabulary([SentencePair(WORDS, WORDS)], config))


class TableDecoder:
    """A model of one sentence whose next token depends on the last one alone."""

    def __init__(self, spelling: Spelling, table: Table, inner: str, attended: Sequence[str]):
        """`inner` is a token that ends no word; after `attended[i]` it attends to position i."""
        self.ids = {text: spelling.ids(text)[0] for text in WORDS.split()}
        self.ids |= {"": BOS, ".": EOS, "?": UNK}
        self.table = np.full((12, 12), np.log(RARE))  # (last token, next token)
        for last, following in table.items():
            for token, p in following.items():
                self.table[self.ids[last], self.ids[token]] = np.log(p)
        self.word_ends = np.arange(12) != self.ids.get(inner, -1)
        self.attended = np.zeros(12, int)
        self.attended[[self.ids[text] for text in attended]] = range(len(attended))
        self.steps = 0

    def step(self, rows: StepRows, best: int, attention: bool) -> NextScores:
        """Count the steps, and look up the scores."""
        self.steps += 1
        self.latest = self.table[rows.tokens]
        tokens = np.argsort(-self.latest, axis=1, kind="stable")[:, :best]
        return NextScores(
            tokens,
            np.take_along_axis(self.latest, tokens, 1),
            self.latest[:, self.word_ends].max(1),
            self.latest[rows.asked_rows, rows.asked_tokens],
            self.attended[rows.tokens] * attention,
        )

    def log_p(self, rows: Sequence[int]) -> Array:
        """Return a copy, which the search may change."""
        latest: Array = self.latest[list(rows)].copy()
        return latest


def translate(
    table: Table,
    constraints: LexicalConstraints,
    beam: int,
    n_best: int = 1,
    inner: str = "",
    attended: Sequence[str] = (),
    **changes: Any,
) -> tuple[list[str], list[float], int]:
    """Return the translations, best first, the probability of each, and the number of steps.

    `changes` are of the settings of the search. A translation has up to 9 tokens besides its terms.
    """
    spelling = spelling_of_words()
    decoder = TableDecoder(spelling, table, inner, attended)
    settings = DecodingConfig(beam_size=beam, length_penalty=0.0, **changes)
    spelled = SpelledConstraints.spell(constraints, spelling, ["▁s", "▁t"])
    search = SentenceSearch(ConstrainedSentence(spelled, spelling), 9, settings, n_best)
    [found] = constrained_search(decoder, [search])
    word_of = {token: word for word, token in decoder.ids.items()}
    texts = [" ".join(word_of[token] for token in each.tokens) for each in found]
    return texts, [exp(each.score) for each in found], decoder.steps


# After "x" the model would end, so "x a" has a handicap although it is the most probable one:
# "a" 0.005, "a c" 0.01 * 0.4 * 0.9 = 0.0036, "x a" 0.9 * 0.05 * 0.5 = 0.0225
ENDS_EARLY = {
    "": {"x": 0.9, "a": 0.01},
    "x": {".": 0.88, "a": 0.05, "y": 0.06},
    "a": {".": 0.5, "c": 0.4},
    "c": {".": 0.9},
}


def test_a_misplaced_term_counts_for_less_and_its_score_stays_log_p() -> None:
    texts, p, _ = translate(ENDS_EARLY, LexicalConstraints(("a",)), beam=8, n_best=3)
    assert texts == ["a", "a c", "x a"]
    assert p == pytest.approx([0.005, 0.0036, 0.0225])


def test_a_search_stops_when_no_hypothesis_can_win_with_its_handicap() -> None:
    # "a" ends in the second step; "x y" has 0.054 then, but with its handicap it cannot win
    texts, _, steps = translate(ENDS_EARLY, LexicalConstraints(("a",)), beam=2)
    assert (texts, steps) == (["a"], 2)


def test_a_search_goes_on_while_a_hypothesis_can_win() -> None:
    # "a" 0.4 * 0.5 = 0.2 ends first, and "b c" 0.6 * 0.9 * 0.9 = 0.49 is better
    table = {"": {"a": 0.4, "b": 0.6}, "a": {".": 0.5}, "b": {"c": 0.9}, "c": {".": 0.9}}
    texts, _, steps = translate(table, LexicalConstraints(), beam=2)
    assert (texts, steps) == (["b c"], 3)


def test_a_hypothesis_that_abandons_a_term_counts_for_less() -> None:
    # "a b" is abandoned for "d": 0.5 * 0.9 * 0.9 * 0.9 = 0.36 before the last "a", more than the
    # 0.3 * 0.9 = 0.27 of "e a"
    table = {
        "": {"a": 0.5, "e": 0.3},
        "a": {"b": 0.9},
        "b": {"d": 0.9, "c": 0.05},
        "c": {".": 0.9},
        "d": {"a": 0.9},
        "e": {"a": 0.9},
    }
    texts, _, _ = translate(table, LexicalConstraints(("a b c",)), beam=8, n_best=3)
    assert texts == ["a b c", "e a b c", "a b d a b c"]


def test_a_hypothesis_that_abandons_one_token_of_a_term_does_not() -> None:
    # "a d a b" loses one token: 0.5 * 0.9 * 0.9 before the last "b"; "e a b" has 0.3 * 0.9
    table = {
        "": {"a": 0.5, "e": 0.3},
        "a": {"d": 0.9, "b": 0.05},
        "b": {".": 0.9},
        "d": {"a": 0.9},
        "e": {"a": 0.9},
    }
    texts, _, _ = translate(table, LexicalConstraints(("a b",)), beam=8, n_best=2)
    assert texts == ["a b", "a d a b"]


def test_a_term_inside_another_word_counts_for_less() -> None:
    # after "x" all tokens but the word's rest "y" are improbable: "x a" has 0.9 * 0.005 * 0.9,
    # more than the 0.9 * 0.95 * 0.002 * 0.9 of "x y a"
    table = {
        "": {"x": 0.9},
        "x": {"y": 0.95, "a": 0.005},
        "y": {"z": 0.9, "a": 0.002},
        "a": {".": 0.9},
    }
    texts, _, _ = translate(table, LexicalConstraints(("a",)), beam=4, n_best=2, inner="y")
    assert texts == ["x y a", "x a"]


def test_a_term_does_not_count_for_less_because_it_has_several_tokens() -> None:
    # the rest "b" of the word follows "a"; in the third step the one place of hypotheses that lack
    # one token is for "a b x" 0.5 * 0.9 * 0.9, not for "c x a" 0.1 * 0.3 * 0.1
    table = {
        "": {"a": 0.5, "c": 0.1},
        "a": {"b": 0.9},
        "b": {"x": 0.9},
        "x": {"c": 0.9, "a": 0.1},
        "c": {".": 0.4, "x": 0.3, "a": 0.3},
    }
    texts, _, _ = translate(table, LexicalConstraints(("a b", "c")), beam=4, inner="b")
    assert texts == ["a b x c"]


def test_a_glossary_term_counts_for_less_before_the_model_attends_to_its_source() -> None:
    # the model attends to the term's source after "x", and "a" 0.09 is more than "x a" 0.0144
    table = {"": {"x": 0.8, "a": 0.1}, "x": {"y": 0.9, "a": 0.02}, "a": {".": 0.9}}
    constraints = LexicalConstraints(("a",), source_spans=(range(1, 2),))
    texts, _, _ = translate(table, constraints, beam=4, n_best=2, attended=("", "x"))
    assert texts == ["x a", "a"]


def test_hypotheses_with_a_handicap_do_not_crowd_out_others() -> None:
    # "x" with "y", "z" and "b" is more probable than "a z", but "x" has a handicap because the
    # model would end there; "a z" 0.01 * 0.4 * 0.9 is the best, although "a y" comes first
    table = {
        "": {"x": 0.9, "a": 0.01},
        "x": {".": 0.52, "a": 0.3, "y": 0.1, "z": 0.05, "b": 0.03},
        "a": {"y": 0.5, "z": 0.4},
        "y": {"y": 0.9, ".": 0.01},
        "z": {".": 0.9},
    }
    texts, _, _ = translate(table, LexicalConstraints(("a",)), beam=3)
    assert texts == ["a z"]


def test_the_best_continuation_of_each_hypothesis_competes() -> None:
    # "x y" and "x b" would fill the beam of 2 without banks, but "a" almost never follows "x"
    table = {
        "": {"x": 0.9, "a": 0.01},
        "x": {"y": 0.5, "b": 0.4},
        "y": {"x": 0.9},
        "a": {"z": 0.9},
        "z": {".": 0.9},
    }
    texts, _, _ = translate(table, LexicalConstraints(("a",)), beam=2)
    assert texts == ["a z"]


def test_a_probable_term_is_not_found_twice() -> None:
    table = {"": {"a": 0.9, "x": 0.05}, "a": {".": 0.9}, "x": {"a": 0.9}}
    texts, _, _ = translate(table, LexicalConstraints(("a",)), beam=4, n_best=2)
    assert texts == ["a", "x a"]


def test_a_forbidden_word_does_not_end_the_translation_early() -> None:
    # after "x" the end is improbable beside the forbidden "y", though more probable than "z"
    table = {"": {"x": 1.0}, "x": {"y": 0.95, ".": 0.005, "z": 0.001}, "z": {".": 0.9}}
    texts, _, _ = translate(table, LexicalConstraints((), ("y",)), beam=2)
    assert texts == ["x z"]


def test_an_unknown_word_stands_only_for_a_term() -> None:
    # "? x ?" 0.9 * 0.85 * 0.9 * 0.1 would be more probable than "? x" 0.9 * 0.85 * 0.06
    table = {"": {"?": 0.9}, "?": {"x": 0.85, ".": 0.1}, "x": {"?": 0.9, ".": 0.06}}
    constraints = LexicalConstraints(("unheard",))
    texts, _, _ = translate(table, constraints, beam=4, n_best=2, allow_unknown=True)
    assert texts == ["?", "? x"]


@pytest.mark.parametrize(
    ("term", "prefix", "expected"),
    [("unheard", "unheard", "? ?"), ("a b", "a unheard", "a ? a b")],
)
def test_an_unknown_word_in_the_prefix_belongs_to_no_term(
    term: str, prefix: str, expected: str
) -> None:
    table = {"?": {"?": 0.1, "a": 0.1, "b": 0.3, ".": 0.4}, "a": {"b": 0.9}, "b": {".": 0.9}}
    texts, _, _ = translate(table, LexicalConstraints((term,), prefix=prefix), beam=4)
    assert texts == [expected]


def test_a_translation_ends_when_the_settings_forbid_all_other_tokens() -> None:
    rules: dict[str, Any] = {"min_length": 100, "no_repeat_ngram": 1, "allow_unknown": False}
    [text], _, _ = translate({}, LexicalConstraints(), beam=1, **rules)
    assert sorted(text.split()) == WORDS.split()


def test_the_beam_goes_round_the_banks_in_the_order_of_adjusted_scores() -> None:
    zeros: Any = np.zeros(4)
    scores, handicaps = np.array([-1.0, -5, -1, -2]), np.array([10.0, 0, 0, 10])
    candidates = Candidates(
        np.zeros(4, int), zeros, zeros, scores, handicaps, missing_tokens=np.array([0, 0, 1, 1])
    )
    assert choose(candidates, np.array([3])).tolist() == [1, 2, 0]
