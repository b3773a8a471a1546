"""Checks an export: what the other program translates greedily, our greedy search must find too.

Greedy search takes the most probable token at each position. So a translation is ours exactly if
each of its tokens, and the EOS after them, is our model's most probable one after those before it.
Our model reads the translations of the other program (teacher forcing) and says for each position
how much more probable its own choice is: 0 if it is the same, next to 0 if two tokens are equally
probable (a tie, which rounding decides), more if the export is wrong.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import torch

from nmt.data.language_tags import LanguageTags
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.errors import DataError, ExchangeError
from nmt.exchange.engine import MAX_TRANSLATION, EngineTranslation
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel

SENTENCES = 200
"""sentences that are translated to verify an export"""
MAX_VERIFIED_SOURCE = MAX_TRANSLATION // 2
"""longer sources, in tokens, are left out, because their translations might be cut"""


Tolerance = tuple[float, float]
"""when an export counts as right: nats, and the share of the sentences that must agree, 0 to 1

A sentence agrees if our choice is at no position more probable by more than the nats, and if log P
of the whole differs by at most the nats per token."""
EXACT: Tolerance = (1e-4, 1.0)
"""for exports in fp32: one sentence that differs is an error"""
ROUNDED: Tolerance = (0.1, 0.9)
"""for exports with rounded weights, which prefer another token where two are almost as probable"""


@dataclass(frozen=True)
class CheckedTranslation:
    """A translation of the other program, and what our model says about it."""

    source: str
    theirs: list[str]
    """the pieces of the other program, and EOS unless the translation is cut"""
    ours: list[str]
    """our most probable piece at each position, after their pieces before it"""
    gaps: list[float]
    """at each position, in nats, how much more probable our piece is than theirs"""
    their_log_p: float
    """log P of the translation by the other program, in nats"""
    our_log_p: float

    @property
    def log_p_error(self) -> float:
        """The difference of log P in nats per token."""
        return abs(self.their_log_p - self.our_log_p) / len(self.theirs)

    def difference(self, nats: float) -> str:
        """Describe the first difference of more than `nats` per token; empty if there is none."""
        for i, gap in enumerate(self.gaps):
            if not gap <= nats:  # larger, or NaN
                return (
                    f"{self.source!r} becomes {self.theirs}; ours continues {self.theirs[:i]} with "
                    f"{self.ours[i]!r}, which is more probable than {self.theirs[i]!r} by "
                    f"{gap:.4g} nats"
                )
        if not self.log_p_error <= nats:
            return (
                f"{self.source!r} becomes {self.theirs} with log P {self.their_log_p:.6f}, "
                f"expected {self.our_log_p:.6f}"
            )
        return ""


def excluded_ids(settings: DecodingConfig) -> list[int]:
    """Return the target ids that no translation has: PAD, BOS, and UNK if it is not allowed."""
    return [PAD, BOS] if settings.allow_unknown else [PAD, BOS, UNK]


def choose_sentences(loaded: LoadedModel, lines: Iterable[str]) -> list[str]:
    """Return the first `SENTENCES` lines of 1 to `MAX_VERIFIED_SOURCE` tokens.

    A line that is blank, or of characters that the tokenizer leaves out, has no token.

    Raises:
        DataError: there is no such line.
    """

    def is_suitable(line: str) -> bool:
        (ids,) = loaded.tokenizer.source.encode([line])
        return bool(line.strip()) and 1 < len(ids) <= MAX_VERIFIED_SOURCE  # EOS is one

    suitable = filter(is_suitable, lines)
    chosen = list(islice(suitable, SENTENCES))  # no more lines are read than needed
    if not chosen:
        raise DataError(
            f"no sentences to verify the export with: expected lines of 1 to {MAX_VERIFIED_SOURCE} "
            "tokens; give others (`verify`)"
        )
    return chosen


def verify_translations(
    loaded: LoadedModel,
    sources: Sequence[str],
    translations: Sequence[EngineTranslation],
    tolerance: Tolerance,
) -> str:
    """Compare greedy translations of another program with our model, and return a summary.

    `sources` and `translations` belong together, one by one.

    Raises:
        ExchangeError: too many differ; the message shows the first one.
    """
    nats, share = tolerance
    target_ids = {piece: i for i, piece in enumerate(loaded.tokenizer.target.pieces)}
    checked = [
        _check(loaded, source, translation, target_ids)
        for source, translation in zip(sources, translations, strict=True)
    ]
    differences = [translation.difference(nats) for translation in checked]
    differences = [difference for difference in differences if difference]
    agreeing = len(checked) - len(differences)
    if agreeing < share * len(checked):
        raise ExchangeError(
            f"the exported model is not the same: {len(differences)} of {len(checked)} "
            f"translations differ, the first of them: {differences[0]}"
        )
    summary = ""
    if share < 1:
        summary = f"with rounded weights {agreeing} of {len(checked)} sentences agree; "
    equal = sum(translation.theirs == translation.ours for translation in checked)
    error = max(translation.log_p_error for translation in checked)
    return summary + (
        f"{equal} of {len(checked)} greedy translations are equal token by token, "
        f"log P differs by at most {error:.1e} nats per token"
    )


@torch.inference_mode()
def _check(
    loaded: LoadedModel, source: str, translation: EngineTranslation, target_ids: Mapping[str, int]
) -> CheckedTranslation:
    """Let our model, in fp32 on the CPU, read a translation of the other program.

    `target_ids` are our ids of the target pieces.
    """
    pieces = loaded.tokenizer.target.pieces
    theirs = translation.pieces if translation.is_cut else [*translation.pieces, pieces[EOS]]
    ids = [target_ids.get(piece, UNK) for piece in theirs]
    languages = LanguageTags(loaded.config.data, loaded.tokenizer)
    row, begin = languages.divide(loaded.tokenizer.source.encode([source])[0])
    given = [] if begin is None else [begin]  # before what is compared
    source_ids = torch.tensor([row])  # (1, S)
    target_input = torch.tensor([[BOS, *given, *ids[:-1]]])  # (1, T)
    target_output = torch.tensor(ids)[:, None]  # (T, 1)
    logits = loaded.model(source_ids, target_input)[0, len(given) :].double()  # (T, V)
    # The softmax of the other program may count the excluded tokens or not. If it does, log P is
    # lower. Any value between the two is right, so the one nearest to theirs is our value.
    lowest = float(logits.log_softmax(1).gather(1, target_output).sum())
    logits[:, excluded_ids(loaded.config.decoding)] = -torch.inf
    log_p = logits.log_softmax(1)  # (T, V)
    log_p_of_pieces = log_p.gather(1, target_output)[:, 0]  # (T,)
    our_log_p = min(max(lowest, translation.log_p), float(log_p_of_pieces.sum()))
    best = log_p.max(1)
    return CheckedTranslation(
        source=source,
        theirs=theirs,
        ours=[pieces[i] for i in best.indices.tolist()],
        gaps=(best.values - log_p_of_pieces).tolist(),
        their_log_p=our_log_p if translation.is_cut else translation.log_p,
        our_log_p=our_log_p,
    )
