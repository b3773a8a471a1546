"""Students for browsers, out: the int8 models of Firefox, Bergamot and translateLocally."""

import gzip
import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.errors import ExchangeError
from nmt.exchange.bergamot_shortlist import Array, in_rows, write_shortlist
from nmt.exchange.engine import EngineTranslation
from nmt.exchange.imported import original_files, write_run
from nmt.exchange.marian import (
    MODEL,
    QUANTIZATION,
    MarianContents,
    decoder_yml,
    import_marian,
    marian_contents,
)
from nmt.exchange.marian_binary import (
    ALPHA,
    EMBEDDINGS,
    LARGEST_INT8,
    OUTPUT_ALPHA,
    MarianWeights,
    multiplier_of,
    read_model,
    write_bin,
)
from nmt.exchange.marian_engine import translate_with_marian
from nmt.exchange.marian_files import parse_yaml, write_npz
from nmt.exchange.marian_names import weight_names
from nmt.exchange.marian_package import DECODER, open_package
from nmt.exchange.verify import EXACT, ROUNDED, excluded_ids, verify_translations
from nmt.model.transformer import Transformer
from nmt.recipe import strict_yaml
from nmt.run.model import LoadedModel, load_model

SETTINGS = "config.intgemm8bitalpha.yml"
REGISTRY = "registry.json"
CANDIDATES = 50
"""entries of each source piece in the shortlist, as many as Firefox's have"""
USAGE = """\
# translateLocally and bergamot-translator read the settings:
#   marian-decoder --config config.intgemm8bitalpha.yml   (that of browsermt/marian-dev)
# nmt reads the folder:
#   nmt import . -o RUN
"""
"""how the exported folder is used, for the model card"""
Lists = tuple[Array, Array]
"""the target ids of each source id (V, N), and those that every source may need"""


def export_bergamot(
    loaded: LoadedModel, folder: Path, texts: Sequence[str], lists: Lists | None
) -> None:
    """Write an int8 model, vocabularies, settings and a registry entry into an empty folder.

    A model that was imported in int8 keeps its multipliers where they still fit, and the alphas. Of
    another model the alphas are found: the largest activations in translations of `texts`.

    Raises:
        ExchangeError: the format cannot hold the model; the message says why.
        OSError: a file cannot be written.
    """
    contents, pair = marian_contents(loaded), _language_pair(loaded)
    _check_holds(loaded, contents)
    kept = json.loads(original_files(loaded).get(QUANTIZATION, b"{}"))
    matrices = {name: weight for name, weight in contents.weights.items() if is_quantized(name)}
    before = kept.get("multipliers", {})
    needed = {*(f"{name}{ALPHA}" for name in matrices), OUTPUT_ALPHA}
    alphas = kept.get("alphas", {})
    if not needed <= alphas.keys():
        alphas = find_alphas(loaded, contents, texts)
    model = MarianWeights(
        options=contents.options,
        weights=contents.weights,
        multipliers={name: multiplier_of(w, before.get(name)) for name, w in matrices.items()},
        alphas=alphas,
    )
    files = {"model": (f"model.{pair}.intgemm.alphas.bin", write_bin(model))}
    if lists:
        shortlist = in_rows(*lists, contents.order)
        files["lex"] = (f"lex.{CANDIDATES}.{CANDIDATES}.{pair}.s2t.bin", write_shortlist(shortlist))
    source, target = contents.vocabularies
    kinds = ["vocab"] if source == target else ["srcvocab", "trgvocab"]
    for kind, name in zip(kinds, contents.vocabularies, strict=False):
        files[kind] = (f"{kind}.{pair}.spm", contents.files[name])
    for name, content in files.values():
        (folder / name).write_bytes(content)
    settings = _settings(loaded, {kind: name for kind, (name, _) in files.items()})
    (folder / SETTINGS).write_text(strict_yaml.dump(settings), "utf-8")
    entry = {pair: {kind: _registered(*file) for kind, file in files.items()}}
    (folder / REGISTRY).write_text(json.dumps(entry, indent=2) + "\n", "utf-8")


def is_quantized(name: str) -> bool:
    """Whether Bergamot stores a weight in int8: matrices, by Marian's names, and embeddings."""
    last = name.rpartition("_")[2]
    return EMBEDDINGS in name or (last.startswith("W") and len(last) <= len("Wf"))


@torch.inference_mode()
def find_alphas(
    loaded: LoadedModel, contents: MarianContents, texts: Sequence[str]
) -> dict[str, float]:
    """Return the alphas: 127 divided by the largest activation in greedy translations of texts.

    Raises:
        ExchangeError: there are no texts.
    """
    if not texts:
        raise ExchangeError(
            "the format bergamot needs sentences, with which the range of the activations is "
            "found; let the export be verified, by the run's test set or by a file"
        )
    largest: dict[str, float] = {}

    def record(name: str, x: Tensor) -> None:
        largest[name] = max(largest.get(name, 0.0), float(x.abs().max()))

    model, handles = loaded.model, []
    options = parse_yaml(contents.options.rstrip(b"\0"), "options")
    for ours, theirs in weight_names(options, loaded.config.model).items():
        module = model.get_submodule(ours.rpartition(".")[0])
        if isinstance(module, nn.Linear) and ours.endswith(".weight"):
            handles.append(
                module.register_forward_pre_hook(
                    lambda _, arguments, name=f"{theirs}{ALPHA}": record(name, arguments[0])
                )
            )
    handles.append(
        model.decoder.register_forward_hook(lambda _, __, result: record(OUTPUT_ALPHA, result))
    )
    try:
        excluded = excluded_ids(loaded.config.decoding)
        for text in texts:
            source = torch.tensor(loaded.tokenizer.source.encode([text]))
            model(source, greedy_input(model, source, excluded))
    finally:
        for handle in handles:
            handle.remove()
    alphas = {name: LARGEST_INT8 / most for name, most in largest.items() if most}
    embeddings = [name for name in contents.weights if EMBEDDINGS in name]
    return alphas | {f"{name}{ALPHA}": alphas[OUTPUT_ALPHA] for name in embeddings}


def greedy_input(model: Transformer, source: Tensor, excluded: list[int]) -> Tensor:
    """Return the greedy translation of ids (1, S) as the decoder reads it, from BOS on: (1, T)."""
    cache, tokens = model.start(model.encode(source), source), [BOS]
    while tokens[-1] != EOS and len(tokens) < 2 * source.shape[1] + 10:
        logits = model.step(torch.tensor([[tokens[-1]]]), cache)[0, 0]
        logits[excluded] = -torch.inf
        tokens.append(int(logits.argmax()))
    return torch.tensor([tokens[:-1] if tokens[-1] == EOS else tokens])


def translate_with_bergamot(folder: Path, texts: Sequence[str]) -> list[EngineTranslation]:
    """Return Marian's greedy translations with the weights that an exported folder stands for.

    Marian reads another number for the type of int8 than its fork for browsers, so it gets the
    same weights in float32.

    Raises:
        MissingExtraError: the package pymarian is not installed.
        ExchangeError: the folder cannot be read, or Marian does not accept the model.
    """
    with tempfile.TemporaryDirectory(prefix="nmt-export-") as name, open_package(folder) as package:
        copy, model = Path(name), read_model(package.models[0])
        (copy / MODEL).write_bytes(write_npz(model.options, model.weights))
        for path in package.vocabularies:
            (copy / path.name).write_bytes(path.read_bytes())
        names = [path.name for path in package.vocabularies]
        settings = {**package.settings, "models": [MODEL], "vocabs": names, "shortlist": []}
        (copy / DECODER).write_text(strict_yaml.dump(settings), "utf-8")
        return translate_with_marian(copy, texts)


def verify_bergamot(loaded: LoadedModel, folder: Path, texts: Sequence[str]) -> str:
    """Compare Marian's translations with an exported folder and nmt's, and return a summary.

    With the weights of the folder, both must be the same. What the model before it was rounded to
    int8 chooses otherwise is only told.

    Raises:
        MissingExtraError: the package pymarian is not installed.
        ExchangeError: a translation differs, or one of both cannot read the folder.
    """
    translations = translate_with_bergamot(folder, texts)
    with tempfile.TemporaryDirectory(prefix="nmt-export-") as name:
        (model,) = import_marian(folder)
        write_run(model, Path(name, "run"))
        rounded = load_model(Path(name, "run"), loaded.device_type)
        same = verify_translations(rounded, texts, translations, EXACT)
    before = verify_translations(loaded, texts, translations, (ROUNDED[0], 0.0))
    return f"{same}; beside the weights before they were rounded: {before}"


def _language_pair(loaded: LoadedModel) -> str:
    """Return the codes of both languages, by which files are named, such as enpt."""
    codes = loaded.config.data.source_language, loaded.config.data.target_language
    if "und" in codes:
        raise ExchangeError(
            f"the files of Bergamot are named by the languages, and the run says {codes[0]} and "
            f"{codes[1]}, undetermined; set data.source_language and data.target_language"
        )
    return "".join(codes)


def _check_holds(loaded: LoadedModel, contents: MarianContents) -> None:
    """Check that Bergamot can compute the model, beyond what Marian can."""
    if loaded.config.model.embeddings == "separate":
        raise ExchangeError(
            "Bergamot needs model.embeddings: shared or target, which is chosen before training, "
            "and the model has separate; export it to marian"
        )
    if any(not name.endswith(".spm") for name in contents.vocabularies):
        raise ExchangeError(
            "Bergamot needs SentencePiece vocabularies whose ids are the rows of the model, and "
            "this one came with a table (.yml); export it to marian"
        )


def _settings(loaded: LoadedModel, names: Mapping[str, str]) -> dict[str, Any]:
    """Return Bergamot's settings: those of decoder.yml, and how the model is computed."""
    vocabularies = [names.get(kind) or names["vocab"] for kind in ("srcvocab", "trgvocab")]
    settings = decoder_yml(names["model"], vocabularies, loaded.config)
    if "lex" in names:
        settings["shortlist"] = [names["lex"], False]
    return {
        **settings,
        "mini-batch": 64,
        "maxi-batch": 1000,
        "maxi-batch-sort": "src",
        "workspace": 128,
        "gemm-precision": "int8shiftAlphaAll",
    }


def _registered(name: str, content: bytes) -> dict[str, Any]:
    """Return what registry.json of firefox-translations-models says about a file."""
    return {
        "name": name,
        "size": len(content),
        "estimatedCompressedSize": len(gzip.compress(content, 6, mtime=0)),
        "expectedSha256Hash": hashlib.sha256(content).hexdigest(),
        "modelType": "prod",
    }
