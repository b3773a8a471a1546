"""All searches as PyTorch computes them: every kind of model and device."""

from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from nmt.data.tokens.batch import collate_source
from nmt.inference.prepare import prepare_for_inference, prepare_for_scoring
from nmt.model.transformer import Transformer
from nmt.recipe.config import DecodingConfig, Sampling
from nmt.run.checkpoint_files import Array
from nmt.run.model import LoadedModel
from nmt.search.beam_search import beam_search
from nmt.search.ensemble import restrict_models
from nmt.search.hypothesis import Hypothesis
from nmt.search.native_sources import BatchSources
from nmt.search.sampling import draw, greedy_search
from nmt.search.source_attention import rank_by_coverage
from nmt.search.torch_steps import TorchSteps


class TorchSearch:
    """A model, or an ensemble, with the settings of its search. Sources are lists of ids."""

    def __init__(self, loaded: LoadedModel, settings: DecodingConfig, precision: str) -> None:
        self._loaded, self._settings, self._precision = loaded, settings, precision

    @property
    def device(self) -> torch.device:
        """The device of the model's weights."""
        return next(self._loaded.model.parameters()).device

    @cached_property
    def model(self) -> Transformer:
        """A copy of the model for fast inference in this precision, made when it is first used."""
        return prepare_for_inference(self._loaded.model, self._precision)

    @cached_property
    def scoring_model(self) -> Transformer:
        """A copy that computes whole translations at once, with the weights of the model itself."""
        return prepare_for_scoring(self._loaded.model)

    def search(
        self,
        sources: BatchSources,
        settings: DecodingConfig,
        n_best: int,
        target_ids: Array | None,
    ) -> list[list[Hypothesis]]:
        """Return up to `n_best` hypotheses of each source, best first, by greedy or beam search.

        With `target_ids` (V'), only these may occur; the tokens found, and those that translations
        begin with, are indices into them.

        Raises:
            NonFiniteScoresError: the model's scores are NaN or infinite.
        """
        model = self.model
        if target_ids is not None:
            model = restrict_models(model, torch.from_numpy(target_ids))
        source, begins = self._collate(sources.ids), self._begins(sources)
        if settings.beam_size == 1:
            return [[best] for best in greedy_search(model, source, settings, begins)]
        return beam_search(model, source, settings, n_best, begins)

    def start(self, sources: list[list[int]], word_ends: Array) -> TorchSteps:
        """Return a decoder of these sources, whose steps another search chooses.

        `word_ends` is a mask (V,), see `NextScores.end_log_p`.
        """
        return TorchSteps(self.model, self._collate(sources), word_ends)

    def draw(
        self, sources: BatchSources, sampling: Sampling, numbers: Sequence[int], count: int
    ) -> list[list[Hypothesis]]:
        """Draw `count` translations of each source, unsorted; `numbers` seed the sources.

        Raises:
            NonFiniteScoresError: the model's scores are NaN or infinite.
        """
        source, begins = self._collate(sources.ids), self._begins(sources)
        return draw(self.model, source, self._settings, sampling, numbers, count, begins)

    def rank_by_coverage(
        self, sources: list[list[int]], hypotheses: list[list[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, the one of the best penalised score first."""
        return rank_by_coverage(self.scoring_model, sources, hypotheses, self._settings)

    def _begins(self, sources: BatchSources) -> Tensor | None:
        return torch.tensor(sources.begins, device=self.device) if sources.begins else None

    def _collate(self, sources: list[list[int]]) -> Tensor:
        return collate_source(sources).to(self.device)
