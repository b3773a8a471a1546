"""Single steps of the decoder by PyTorch, for a search in Python (`StepDecoder`)."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from nmt.errors import NonFiniteScoresError
from nmt.model.attention import AttentionRecord
from nmt.model.transformer import Transformer
from nmt.run.checkpoint_files import Array
from nmt.search.decoding import log_probabilities
from nmt.search.source_attention import attention_of_step, most_attended
from nmt.search.step_decoder import NextScores, StepRows


class TorchSteps:
    """A model, or an ensemble, with the encoded sources of one batch: ids (B, S), padded.

    The model needs equally many hypotheses of each sentence; a sentence with fewer than the others
    repeats its first one, and the results are ignored.
    """

    @torch.inference_mode()
    def __init__(self, model: Transformer, source: Tensor, word_ends: Array) -> None:
        """Encode the sources; `word_ends` is a mask (V,), see `NextScores.end_log_p`."""
        self._model, self._source = model, source
        self._cache = model.start(model.encode(source), source)
        self._sentences = list(range(len(source)))
        """the sentences in the cache, in its order"""
        self._has_started = False
        self._word_ends = torch.from_numpy(word_ends.nonzero()[0]).to(source.device)  # indices
        self._log_p = torch.empty(0)
        """(R, V) log P after each row of the last step"""

    @torch.inference_mode()
    def step(self, rows: StepRows, best: int, attention: bool) -> NextScores:
        """Add a token to hypotheses, and return the scores of the next ones, see `StepDecoder`.

        Raises:
            NonFiniteScoresError: the model's scores are NaN or infinite.
        """
        triples = zip(*(each.tolist() for each in rows[:3]), strict=True)
        by_sentence = {n: list(group) for n, group in groupby(triples, lambda triple: triple[0])}
        self._drop_all_but(list(by_sentence))
        width = max(map(len, by_sentence.values()))
        filled: list[list[tuple[int, int, int]]] = []  # as many rows of each sentence
        is_own: list[bool] = []  # of each row in `filled`: False for one that is repeated
        for group in by_sentence.values():
            missing = width - len(group)
            filled.append(group + group[:1] * missing)
            is_own += [True] * len(group) + [False] * missing
        if self._has_started:
            parents = [[parent for _, parent, _ in group] for group in filled]
            self._cache.continue_hypotheses(self._tensor(parents))
        self._has_started = True
        latest = self._tensor([[token for _, _, token in group] for group in filled])
        record = AttentionRecord() if attention else None  # collects the weights
        logits = self._model.step(latest, self._cache, record).flatten(0, 1).float()  # (N * k, V)
        kept = self._tensor(is_own)
        log_p = log_probabilities(logits)[kept]
        if log_p.isnan().any():
            raise NonFiniteScoresError()
        values, tokens = (part.cpu().numpy() for part in log_p.topk(min(best, log_p.shape[1])))
        attended = np.zeros(len(rows.tokens), np.int32)
        if record is not None:
            weights = attention_of_step(self._model, record.cross)  # (N, k, S)
            most = most_attended(weights, self._source, self._model.padding)
            attended = most.flatten()[kept].cpu().numpy()
        end_log_p = log_p[:, self._word_ends].amax(1).cpu().numpy()
        self._log_p = log_p
        asked_log_p = log_p[rows.asked_rows.tolist(), rows.asked_tokens.tolist()]
        return NextScores(tokens, values, end_log_p, asked_log_p.cpu().numpy(), attended)

    def log_p(self, rows: Sequence[int]) -> Array:
        """Return log P (N, V) of all tokens after these N rows of the last step."""
        log_p: Array = self._log_p[list(rows)].cpu().numpy()
        return log_p

    def _drop_all_but(self, sentences: list[int]) -> None:
        """Keep the source and the cache of these sentences alone."""
        if sentences != self._sentences:
            kept = self._tensor([self._sentences.index(n) for n in sentences])
            self._cache.keep_sentences(kept)
            self._source = self._source[kept]
            self._sentences = sentences

    def _tensor(self, numbers: list[list[int]] | list[int] | list[bool]) -> Tensor:
        return torch.tensor(numbers, device=self._source.device)
