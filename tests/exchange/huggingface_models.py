"""Tiny folders of Hugging Face's Marian models: random weights, real SentencePiece models."""

import json
import random
from pathlib import Path
from typing import Any

import torch
from transformers import MarianConfig, MarianMTModel

from nmt.data.tokens.vocabulary import pieces_of
from tests.marian_vocabularies import learn

SUBJECTS = ["the cat", "a dog", "my old friend", "the small child", "nobody", "Anna", "the tree"]
VERBS = ["sees", "likes", "does not want", "remembers", "waits for", "eats", "paints"]
OBJECTS = ["a red house", "the big river", "three apples", "music", "the snow", "you", "a bird"]
ENDS = [".", "!", " today.", " in the garden.", ", but not now.", " at 10 o'clock?"]
SWAPS = str.maketrans({"e": "ö", "a": "ä", "s": "ß", "o": "u", "t": "d"})


def sentences(count: int, seed: int) -> list[str]:
    """Return `count` random sentences of a few words each."""
    draw = random.Random(seed)
    parts = (SUBJECTS, VERBS, OBJECTS)
    return [" ".join(map(draw.choice, parts)) + draw.choice(ENDS) for _ in range(count)]


ODD = [
    "",
    " ",
    "  two   spaces ",
    "ab\tcd\u00a0ef",
    "</s> <unk> <pad>",
    "世界 and Ωmega",
    "ＦＵＬＬ ｗｉｄｔｈ ﬁ",
    "▁ under ▁▁score",
    "e\u0301a\u0308",
    "🙂🙃",
    "don't, 'can't' \"quoted\" 1,000.50",
    "x" * 300,
    ">>fra<< the cat sees you.",
    ">>fra<<the cat sees you.",
    ">>xyz<< the cat",
    "the cat >>fra<< sees",
]
SPECIALS = {"source_lang": "eng", "target_lang": "deu", "tokenizer_class": "MarianTokenizer"}
SPECIALS |= {"eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def write_segmentation(path: Path, texts: list[str], kind: str, size: int) -> list[str]:
    """Learn a SentencePiece model as Marian does, write it, and return its pieces."""
    model = learn(kind, texts, size)
    path.write_bytes(model)
    return pieces_of(model, str(path))


def write_vocabularies(
    folder: Path, kind: str, separate: bool, tags: bool, holes: bool
) -> list[dict[str, int]]:
    """Write the SentencePiece models and vocab.json; return the rows of source and target."""
    texts = sentences(300, seed=1)
    source = write_segmentation(folder / "source.spm", texts, kind, 150)
    target = write_segmentation(
        folder / "target.spm", [text.translate(SWAPS) for text in texts], kind, 130
    )
    first = ["</s>", "<unk>", *([">>fra<<", ">>deu<<"] if tags else [])]
    lists = [source, target] if separate else [source + target]
    tables = []
    for pieces, name in zip(lists, ("vocab.json", "target_vocab.json"), strict=False):
        spellings = [*dict.fromkeys([*first, *pieces, "<pad>"])]
        if separate:  # padding has one row in both
            spellings.remove("<pad>")
            spellings.insert(2, "<pad>")
        rows = {piece: row for row, piece in enumerate(spellings)}
        if holes:  # an ordinary piece that SentencePiece can still split into shorter ones
            long = [piece for piece in spellings[4:-1] if len(piece) > 3 and piece != "<pad>"]
            for piece in long[::5]:
                del rows[piece]
        (folder / name).write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
        tables.append(rows)
    return tables if separate else tables * 2


def write_model(
    folder: Path,
    *,
    kind: str = "unigram",
    separate: bool = False,
    tags: bool = False,
    holes: bool = False,
    pickle: bool = False,
    ending: float = 0,
    **settings: Any,
) -> None:
    """Write a folder as MarianMTModel and MarianTokenizer save it; `settings` are of the config.

    `holes`: vocab.json lacks pieces, and the matrix has a row more than the vocabulary.
    `ending`: translations end at about the length of their source (`make_translations_end`).
    """
    folder.mkdir(parents=True)
    source, target = write_vocabularies(folder, kind, separate, tags, holes)
    pad = target["<pad>"]
    if separate:
        rows = {"vocab_size": max(source.values()) + 1, "share_encoder_decoder_embeddings": False}
        rows["decoder_vocab_size"] = max(target.values()) + 1
    else:
        rows = {"vocab_size": max(target.values()) + 1 + holes}
    sizes: dict[str, Any] = {
        "d_model": 16,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "activation_function": "relu",
        "init_std": 0.4,
    }
    sizes |= {f"{stack}_attention_heads": 2 for stack in ("encoder", "decoder")}
    sizes |= {f"{stack}_ffn_dim": 32 for stack in ("encoder", "decoder")}
    config = MarianConfig(
        **sizes | rows | settings,
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=pad,
        decoder_start_token_id=pad,
        eos_token_id=0,
        bos_token_id=0,
        forced_eos_token_id=0,
    )
    torch.manual_seed(1)
    model: Any = MarianMTModel(config)
    for name, weight in model.named_parameters():
        if weight.dim() == 1:  # neutral biases and gains would hide mistakes
            torch.nn.init.normal_(weight, mean=float("norm.weight" in name), std=0.2)
    with torch.no_grad():
        model.final_logits_bias.normal_(0, 0.3)
        model.final_logits_bias[0, 0] += 5  # so that sentences end
    model.generation_config.bad_words_ids = [[pad]]
    if ending:
        make_translations_end(model, min(len(source), len(target)), ending)
    model.save_pretrained(folder)
    if pickle:
        torch.save(model.state_dict(), folder / "pytorch_model.bin")
        (folder / "model.safetensors").unlink()
    tokenizer = SPECIALS | {"separate_vocabs": separate, "model_max_length": 512}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer), "utf-8")


def make_translations_end(model: Any, pieces: int, dependence: float) -> None:
    """Change a random model so that its translations differ and end near their source's length.

    Otherwise it ends them at once or at the limit, and its translations hardly differ. The larger
    `dependence` is, the more they depend on their source: 1 suits small models, 2 large ones.
    """
    model.eval()
    with torch.no_grad():
        # so that a token does not make itself the most probable next one
        model.model.decoder.layers[-1].final_layer_norm.weight.normal_(0, 2)
        for layer in model.model.decoder.layers:  # so that translations depend on their source
            layer.encoder_attn.q_proj.weight *= 4 * dependence
            layer.encoder_attn.out_proj.weight *= 2 * dependence
    fit_row_of_eos(model, pieces)


def fit_row_of_eos(model: Any, pieces: int) -> None:
    """Fit the output row and bias of EOS by ridge regression over translations that are sampled.

    The logit of EOS is to exceed the logsumexp of all others by two nats for each token that a
    translation is longer than its source.
    """
    model.final_logits_bias[0, 0] = -1000  # EOS is never sampled
    states, logits = [], []
    for length in range(3, 24, 4):
        source = torch.randint(3, pieces - 1, (32, length))
        source[:, -1] = 0
        sampled = model.generate(source, num_beams=1, do_sample=True, max_new_tokens=length + 16)
        target = sampled[:, :-1]  # without the forced EOS
        with torch.inference_mode():
            found = model(input_ids=source, decoder_input_ids=target, output_hidden_states=True)
        beyond = torch.arange(target.shape[1]) - length
        logits.append((found.logits[:, :, 1:].logsumexp(-1) + 2 * beyond).flatten())
        states.append(found.decoder_hidden_states[-1].flatten(0, 1))
    inputs = torch.nn.functional.pad(torch.cat(states), (0, 1), value=1.0).double()
    # Layer norm makes columns collinear: without the ridge, rounding would decide the row.
    ridge = 0.01 * len(inputs) * torch.eye(inputs.shape[1])
    fitted = torch.linalg.solve(inputs.T @ inputs + ridge, inputs.T @ torch.cat(logits).double())
    with torch.no_grad():
        model.get_output_embeddings().weight[0] = fitted[:-1]
        model.final_logits_bias[0, 0] = fitted[-1]
