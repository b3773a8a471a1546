from types import SimpleNamespace
from typing import Any

from nmt.config import DecodingConfig
from nmt.data.tokens.tokenizer import EOS
from nmt.search.beam_allocation import WIDEST_BEAM, Partial, SentenceSearch, beam_width
from nmt.search.constrained_sentence import ConstraintProgress


def demanding(total: int) -> Any:
    """Constraints whose terms have this many tokens."""
    return SimpleNamespace(spelled=SimpleNamespace(total=total, room=total))


def partial(score: float, needed: int, handicap: float = 0.0, token: int = 9) -> Partial:
    return Partial((token,), score, ConstraintProgress(), needed, 0, handicap)


def test_the_beam_goes_round_the_banks_the_most_met_first() -> None:
    search = SentenceSearch.begin(0, 10, 4, demanding(2))
    free = [partial(-1.0, 2), partial(-2.0, 2), partial(-3.0, 2), partial(-4.0, 2)]
    chosen = search.choose([*free, partial(-50.0, 0), partial(-20.0, 1)])
    assert [(h.needed, h.score) for h in chosen] == [(0, -50), (1, -20), (2, -1), (2, -2)]


def test_without_terms_the_best_are_chosen() -> None:
    search = SentenceSearch.begin(0, 10, 2, demanding(0))
    chosen = search.choose([partial(-3.0, 0), partial(-1.0, 0), partial(-2.0, 0)])
    assert [h.score for h in chosen] == [-1, -2]


def test_a_misplaced_term_counts_for_less_and_its_score_stays_log_p() -> None:
    search = SentenceSearch.begin(0, 10, 2, demanding(0))
    misplaced = partial(-1.0, 0, token=EOS).handicapped()
    chosen = search.choose([misplaced, partial(-2.0, 0, token=EOS)])
    search.extend(chosen, DecodingConfig(length_penalty=0.0), EOS, n_best=2)
    assert [found.score for _, found in search.ended] == [-2, -1]


def test_every_bank_has_a_slot_up_to_a_limit() -> None:
    assert [beam_width(demanding(n).spelled, 4) for n in (0, 3, 9, 500)] == [4, 4, 10, WIDEST_BEAM]
