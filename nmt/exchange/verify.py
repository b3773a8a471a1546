"""Checks an export: what the other program translates greedily, our greedy search must find too.

Greedy search takes the most probable token at each position. So a translation is ours exactly if
each of its tokens, and the EOS after them, is our model's most probable one after those before it.
Our model reads the translations of the other program (teacher forcing) and says for each position
how much more probable its own choice is: 0 if it is the same, next to 0 if two tokens are equally
probable (a tie, which rounding decides), more if the export is wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import torch

from nmt.config import DecodingConfig
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.errors import DataError, ExchangeError
from nmt.exchange.engine import LONGEST, EngineTranslation
from nmt.run_directory import LoadedModel

SENTENCES = 200
LONGEST_SOURCE = LONGEST // 2
"""longer sources, in tokens, are left out, as their translations might be cut"""


class Tolerance(NamedTuple):
    """When an export counts as right."""

    nats: float
    """a sentence agrees if our choice is at no position more probable by more than this, and if log
    P of the whole differs by at most this times its tokens"""
    share: float
    """share of the sentences that must agree"""


EXACT = Tolerance(1e-4, 1.0)
"""for exports in fp32: one sentence that differs is an error"""
ROUNDED = Tolerance(0.1, 0.9)
"""for exports with rounded weights, which prefer another token where two are almost as probable"""


@dataclass(frozen=True)
class CheckedTranslation:
    """A translation of the other program, and what our model says about it."""

    text: str
    """the source"""
    theirs: list[str]
    """the pieces of the other program, and EOS unless the translation is cut"""
    ours: list[str]
    """our most probable piece at each position, after their pieces before it"""
    gaps: list[float]
    """at each position, in nats, how much more probable our piece is than theirs"""
    log_p: tuple[float, float]
    """log P of the translation by the other program, and by our model"""

    @property
    def log_p_error(self) -> float:
        """The difference of log P in nats per token."""
        return abs(self.log_p[0] - self.log_p[1]) / len(self.theirs)

    def agrees(self, nats: float) -> bool:
        """Return whether no difference is larger than `nats` per token; NaN is."""
        return all(gap <= nats for gap in self.gaps) and self.log_p_error <= nats

    def describe(self, nats: float) -> str:
        """Return the first difference larger than `nats`, as the end of a sentence."""
        for i, gap in enumerate(self.gaps):
            if not gap <= nats:
                return (
                    f"{self.text!r} becomes {self.theirs}; ours continues {self.theirs[:i]} with "
                    f"{self.ours[i]!r}, which is more probable than {self.theirs[i]!r} by "
                    f"{gap:.4g} nats"
                )
        theirs, ours = self.log_p
        return f"{self.text!r} becomes {self.theirs} with log P {theirs:.6f}, expected {ours:.6f}"


def excluded_ids(settings: DecodingConfig) -> list[int]:
    """Return the target ids that no translation has: PAD, BOS, and UNK if it is not allowed."""
    return [PAD, BOS] if settings.allow_unknown else [PAD, BOS, UNK]


def choose_sentences(run: LoadedModel, lines: Iterable[str]) -> list[str]:
    """Return the first `SENTENCES` lines that are neither blank nor longer than `LONGEST_SOURCE`.

    Raises:
        DataError: there is no such line.
    """
    encode = run.tokenizer.source.encode
    suitable = (x for x in lines if x.strip() and len(encode([x])[0]) <= LONGEST_SOURCE)
    chosen = list(islice(suitable, SENTENCES))
    if not chosen:
        raise DataError(
            f"no sentences to verify the export with: expected lines of 1 to {LONGEST_SOURCE} "
            "tokens; give others with --verify FILE"
        )
    return chosen


def verify_translations(
    run: LoadedModel,
    texts: Sequence[str],
    translations: Sequence[EngineTranslation],
    tolerance: Tolerance,
) -> str:
    """Compare greedy translations of another program with our model, and return a summary.

    Raises:
        ExchangeError: too many differ; the message shows the first one.
    """
    index = {piece: i for i, piece in enumerate(run.tokenizer.target.pieces)}
    checked = [
        _check(run, text, translation, [index.get(piece, UNK) for piece in translation.pieces])
        for text, translation in zip(texts, translations, strict=True)
    ]
    different = [each for each in checked if not each.agrees(tolerance.nats)]
    if len(different) > (1 - tolerance.share) * len(checked):
        raise ExchangeError(
            f"the exported model is not the same: {len(different)} of {len(checked)} translations "
            f"differ, the first of them: {different[0].describe(tolerance.nats)}"
        )
    equal = sum(each.theirs == each.ours for each in checked)
    error = max(each.log_p_error for each in checked)
    agreeing = len(checked) - len(different)
    rounded = f"with rounded weights {agreeing} of {len(checked)} sentences agree; "
    return (
        f"{rounded if tolerance.share < 1 else ''}"
        f"{equal} of {len(checked)} greedy translations are equal token by token, "
        f"log P differs by at most {error:.1e} nats per token"
    )


@torch.inference_mode()
def _check(
    run: LoadedModel, text: str, translation: EngineTranslation, ids: list[int]
) -> CheckedTranslation:
    """Let our model, in fp32 on the CPU, read a translation of the other program, with its ids."""
    pieces = run.tokenizer.target.pieces
    is_cut = len(ids) >= LONGEST - 1
    ids = ids + [EOS] * (not is_cut)
    source = torch.tensor(run.tokenizer.source.encode([text]))
    logits = run.model(source, torch.tensor([[BOS, *ids[:-1]]]))[0].double()  # (T, V)
    target = torch.tensor(ids)[:, None]
    lowest = float(logits.log_softmax(1).gather(1, target).sum())
    logits[:, excluded_ids(run.config.decoding)] = -torch.inf
    log_p = logits.log_softmax(1)
    chosen = log_p.gather(1, target)
    # the program's softmax may count the excluded tokens or not
    ours = min(max(lowest, translation.log_p), float(chosen.sum()))
    best = log_p.max(1)
    return CheckedTranslation(
        text,
        [*translation.pieces, *[pieces[EOS]] * (not is_cut)],
        [pieces[i] for i in best.indices.tolist()],
        (best.values - chosen[:, 0]).tolist(),
        (ours if is_cut else translation.log_p, ours),
    )
