"""What training minimises is the loss of the model's logits, in the precision asked for."""

import pytest
import torch
import torch.nn.functional as F

from nmt.config import ModelConfig
from nmt.data.tokens.batch import Batch
from nmt.data.tokens.tokenizer import PAD
from nmt.model.transformer import Transformer
from nmt.training.loss import Objective

V = 40


def batch() -> Batch:
    torch.manual_seed(1)
    source, target = (torch.randint(4, V, (6, length)) for length in (9, 7))
    source[2, 5:] = target[2, 3:] = PAD
    shifted = target.roll(1, dims=1)
    shifted[:, 0] = 1
    shifted[target == PAD] = PAD
    return Batch(source, shifted, target, int((target != PAD).sum()))


def objective(precision: str, embeddings: str, norm: str = "post") -> Objective:
    torch.manual_seed(2)
    sizes = {"d_model": 32, "heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2}
    config = ModelConfig(**sizes, dropout=0.0, embeddings=embeddings, norm=norm)  # type: ignore[arg-type]
    return Objective(Transformer(config, V, V, PAD), 0.1, precision)


@pytest.mark.parametrize("embeddings", ["shared", "target", "separate"])
def test_it_is_the_smoothed_loss_of_the_logits(embeddings: str) -> None:
    trained, some = objective("fp32", embeddings), batch()
    parameters = list(trained.parameters())
    total = trained(some).total
    found = torch.autograd.grad(total, parameters)
    log_p = trained.model(some.source, some.target_input).log_softmax(-1)
    q = F.one_hot(some.target_output, V) * (0.9 - 0.1 / (V - 1)) + 0.1 / (V - 1)
    expected = -(q * log_p).sum(-1)[some.target_output != PAD].sum()
    torch.testing.assert_close(total, expected)
    gradients = torch.autograd.grad(expected, parameters)
    for one, other in zip(found, gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_in_bfloat16_loss_and_gradients_are_near_those_of_float32(norm: str) -> None:
    exact, rounded = objective("fp32", "shared", norm), objective("bf16", "shared", norm)
    losses, gradients = [], []
    for trained in (exact, rounded):
        loss = trained(batch()).total
        losses.append(loss.item())
        gradients.append(torch.autograd.grad(loss, list(trained.parameters())))
    assert losses[1] == pytest.approx(losses[0], rel=2e-3)
    assert all(gradient.dtype == torch.float32 for gradient in gradients[1])
    exact_gradient, gradient = (torch.nn.utils.parameters_to_vector(g) for g in gradients)
    assert (gradient - exact_gradient).norm() < 0.08 * exact_gradient.norm()


def test_between_the_layers_of_a_cpu_all_is_in_bfloat16() -> None:
    trained, seen = objective("bf16", "shared"), set()
    for layer in (*trained.model.encoder.layers, *trained.model.decoder.layers):
        layer.register_forward_hook(lambda module, x, y: seen.add(y.dtype))
    trained(batch())
    assert seen == {torch.bfloat16}
