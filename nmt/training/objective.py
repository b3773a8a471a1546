"""The loss of a batch, which training minimises: a module, so that workers can share it."""

import torch
from torch import nn

from nmt.data.tokens.batch import Batch
from nmt.data.tokens.tokenizer import PAD
from nmt.device import autocast
from nmt.model.layout import PADDED, Layout, UnpaddedLayout
from nmt.model.transformer import Transformer
from nmt.training.loss import Loss, label_smoothed_cross_entropy


class Objective(nn.Module):
    """A model and how the loss of a batch is computed: label smoothing and precision."""

    def __init__(self, model: Transformer, smoothing: float, precision: str) -> None:
        super().__init__()
        self.model, self.smoothing, self.precision = model, smoothing, precision

    def forward(self, batch: Batch) -> Loss:
        """Summed over the target tokens of the batch; products are in the precision asked for."""
        device = batch.source.device
        # a GPU computes padding beside the tokens, whose number it would have to be asked for
        layouts: tuple[Layout, Layout] = (PADDED, PADDED)
        if device.type == "cpu":
            layouts = UnpaddedLayout(batch.target_input, PAD), UnpaddedLayout(batch.source, PAD)
        with autocast(device, self.precision, once=True):
            x = self.model.outputs(batch.source, batch.target_input, layouts=layouts)
        if self.precision == "bf16":  # where a GPU's last norm is in float32
            x = x.to(torch.bfloat16)
        target = layouts[0].tokens(batch.target_output)
        matrix = self.model.output_embedding.weight
        return label_smoothed_cross_entropy(x, matrix, target, PAD, self.smoothing)
