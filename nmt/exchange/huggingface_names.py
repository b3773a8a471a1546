"""The names of a model's weights in Marian and Pegasus models of Hugging Face: one table."""

from nmt.config import ModelConfig

_PARTS = {
    "self_attention": "self_attn",
    "self_attention_sublayer.norm": "self_attn_layer_norm",
    "cross_attention": "encoder_attn",
    "cross_attention_sublayer.norm": "encoder_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_sublayer.norm": "final_layer_norm",
}
"""{our name: theirs} of the parts of a layer"""
_PROJECTIONS = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}


def names_of(config: ModelConfig) -> dict[str, str]:
    """Return {our name: theirs} of all weights but the output bias, which has another shape."""
    source, target, output = "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head"
    if config.embeddings == "shared":
        target = "model.shared"
    names = {"target_embedding": target}
    if config.embeddings != "shared":
        names["source_embedding"] = source
    if config.embeddings == "separate":
        names["output_embedding"] = output
    for stack, depth in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for i in range(depth):
            for part, theirs in _parts_of_layer(stack).items():
                names[f"{stack}.layers.{i}.{part}"] = f"model.{stack}.layers.{i}.{theirs}"
        if config.norm == "pre":
            names[f"{stack}.norm"] = f"model.{stack}.layer_norm"
    return {
        f"{ours}.{kind}": f"{theirs}.{kind}"
        for ours, theirs in names.items()
        for kind in (("weight",) if "embed" in ours else ("weight", "bias"))
    }


def _parts_of_layer(stack: str) -> dict[str, str]:
    """Return {our name: theirs} of all linear maps and norms of a layer."""
    names: dict[str, str] = {}
    for ours, theirs in _PARTS.items():
        if stack == "encoder" and ours.startswith("cross"):
            continue
        if ours.endswith("attention"):
            names |= {f"{ours}.{a}": f"{theirs}.{b}" for a, b in _PROJECTIONS.items()}
        else:
            names[ours] = theirs
    return names
