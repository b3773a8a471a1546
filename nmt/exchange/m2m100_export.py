"""Export of a model that translates between many languages as `M2M100ForConditionalGeneration`.

An imported model gets its original files and order of rows back. One whose vocabulary has changed
since gets those of NLLB: the special tokens of fairseq, the pieces, the languages.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import safetensors.torch

from nmt.data.language_tags import tags_of_pair
from nmt.data.tokens.tokenizer import EOS, PAD
from nmt.data.tokens.vocabulary import parse_model
from nmt.errors import ExchangeError
from nmt.exchange.engine import (
    MAX_SOURCE,
    MAX_TRANSLATION,
    EngineTranslation,
    Program,
    import_engine,
)
from nmt.exchange.fast_tokenizer import FAST_TOKENIZER, nllb_tokenizer_json
from nmt.exchange.huggingface import CONFIG, GENERATION, TOKENIZER
from nmt.exchange.huggingface_export import (
    dump,
    search_settings,
    translate_text,
    updated_files,
)
from nmt.exchange.huggingface_files import parse_json
from nmt.exchange.huggingface_names import (
    M2M100,
    OURS_M2M100,
    PARTS,
    PROGRAM,
    read_config,
    settings_of,
    weight_names,
)
from nmt.exchange.imported import original_files, original_order, reorder_rows
from nmt.exchange.m2m100 import FIRST_PIECES, KEPT, SEGMENTATION, SPECIAL_ROWS, read_vocabulary
from nmt.exchange.verify import excluded_ids
from nmt.recipe.config import ModelConfig, spell_tag
from nmt.run.directory import find_run
from nmt.run.model import LoadedModel

PROGRAM_M2M100 = Program(
    "M2M100ForConditionalGeneration",
    {**PROGRAM.settings, **{name: [value] for name, value in OURS_M2M100.items()}},
    PARTS,
)
USAGE = """\
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(".", src_lang="{source}")
model = AutoModelForSeq2SeqLM.from_pretrained(".")
batch = tokenizer(["A dog sleeps."], return_tensors="pt", padding=True)
begin = tokenizer.convert_tokens_to_ids("{target}")
found = model.generate(**batch, forced_bos_token_id=begin)
print(tokenizer.batch_decode(found, skip_special_tokens=True))
"""
"""how the exported folder is used, for the model card, with two languages"""


def is_m2m100_like(config: ModelConfig) -> bool:
    """Whether a model has what only this class of transformers has."""
    return config.positions == "fairseq" or config.start_embedding == "eos"


def usage(loaded: LoadedModel) -> str:
    """Return lines of Python that use the exported folder, for the model card."""
    tags = tags_of_pair(loaded.config.data, loaded.config.data.languages)
    source, target = (tag.strip("<>") for tag in tags)
    return USAGE.format(source=source, target=target)


def export_m2m100(loaded: LoadedModel, folder: Path) -> None:
    """Write config.json, the weights and the tokenizer's files into an empty folder.

    Unchanged weights of an imported model go back bit for bit.

    Raises:
        ExchangeError: the class lacks a part of the model, or the run names no languages.
        OSError: a file cannot be written.
    """
    PROGRAM_M2M100.check_holds(loaded.model, loaded.config.model)
    if not loaded.config.data.language_tags:
        raise ExchangeError(
            "transformers has this architecture for models of many languages alone, and the run "
            "has no data.language_tags; export it as ctranslate2 or safetensors"
        )
    files, rows = _files_and_rows(loaded)
    for name, content in files.items():
        (folder / name).write_bytes(content)
    named = dict(loaded.model.named_parameters())
    weights = {name: named[name].detach().float() for name in weight_names(loaded.config.model)}
    ordered = reorder_rows(weights, (rows, rows))
    theirs = weight_names(loaded.config.model)
    contiguous = {theirs[name]: weight.contiguous() for name, weight in ordered.items()}
    safetensors.torch.save_file(contiguous, folder / "model.safetensors", {"format": "pt"})


def _files_and_rows(loaded: LoadedModel) -> tuple[dict[str, bytes], list[int]]:
    """Return the files {name: content} but for the weights, and our id of each of their rows."""
    originals, folder = original_files(loaded), find_run(loaded.path).imported
    if CONFIG in originals and SEGMENTATION in originals:
        settings = parse_json(originals[CONFIG], folder / CONFIG)
        vocabulary = read_vocabulary(originals, settings, folder)
        architecture = read_config(settings, str(folder / CONFIG))
        order = original_order(loaded, architecture, (vocabulary, vocabulary))
        if order:
            kept = {name: originals[name] for name in KEPT if name in originals}
            return updated_files(loaded, kept, order[1], folder), order[1]
    return _own_files(loaded)


def _own_files(loaded: LoadedModel) -> tuple[dict[str, bytes], list[int]]:
    """Return the files of a model whose vocabulary is not that of an import, and the same ids."""
    model, data = loaded.tokenizer.source, loaded.config.data
    proto = parse_model(model.model, "the tokenizer")
    tags = [model.tags[spell_tag(code)] for code in data.language_tags]
    text = [i for i, piece in enumerate(proto.pieces) if i > EOS and piece.type == piece.NORMAL]
    rest = sorted(set(range(EOS + 1, model.size)) - {*tags, *text})
    first = [i for i, _row in sorted(SPECIAL_ROWS.items(), key=lambda item: item[1])]
    ids = [*first, *text, *tags, *rest]
    names = dict(zip(first, ("<s>", "<pad>", "</s>", "<unk>"), strict=True))
    names |= {i: model.pieces[i] for i in (*text, *rest)}
    names |= dict(zip(tags, data.language_tags, strict=True))
    specials = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
    specials |= {"decoder_start_token_id": 2}
    excluded = [ids.index(i) for i in excluded_ids(loaded.config.decoding)]
    settings = {
        "model_type": M2M100,
        "architectures": ["M2M100ForConditionalGeneration"],
        **settings_of(loaded.config.model),
        **{name: getattr(loaded.config.model, name) for name in ("dropout", "attention_dropout")},
        "activation_dropout": loaded.config.model.activation_dropout,
        "max_position_embeddings": MAX_SOURCE,
        "vocab_size": len(ids),
        "tie_word_embeddings": True,
        "dtype": "float32",
        **specials,
    }
    search = search_settings(loaded.config.decoding, excluded)
    tokenizer = {
        "tokenizer_class": "NllbTokenizer",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "pad_token": "<pad>",
        "extra_special_tokens": list(data.language_tags),
        "model_max_length": MAX_SOURCE,
    }
    vocabulary = [names[i] for i in ids]
    files: dict[str, Any] = {
        CONFIG: settings,
        GENERATION: specials | {"max_length": MAX_TRANSLATION} | search,
        TOKENIZER: tokenizer,
        FAST_TOKENIZER: nllb_tokenizer_json(model, vocabulary, data.language_tags),
    }
    contents = {name: dump(value) for name, value in files.items()}
    return contents | {SEGMENTATION: _segmentation(proto, text)}, ids


def _segmentation(proto: Any, text: Sequence[int]) -> bytes:
    """Return a SentencePiece model of these pieces behind the special ones of fairseq."""
    pieces = [proto.pieces[i] for i in text]
    new = type(proto.pieces[0])
    first = [new(piece=piece, type=3) for piece in FIRST_PIECES]  # 3: of no text
    first[0].type = 2  # unknown
    spec = proto.trainer_spec
    spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id = 0, 1, 2, -1
    spec.unk_piece, spec.bos_piece, spec.eos_piece = FIRST_PIECES
    del proto.pieces[:]
    proto.pieces.extend([*first, *pieces])
    spec.vocab_size = len(proto.pieces)
    serialized: bytes = proto.SerializeToString()
    return serialized


def translate_as_m2m100(
    folder: Path, texts: Sequence[str], loaded: LoadedModel
) -> list[EngineTranslation]:
    """Return greedy translations by the exported folder of `loaded`, between its two languages.

    Raises:
        MissingExtraError: the package transformers is not installed.
        ConfigError: the languages of the run are not known.
    """
    transformers = import_engine("transformers", "verifying a model with transformers")
    transformers.utils.logging.disable_progress_bar()
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    _, rows = _files_and_rows(loaded)
    own = {token: row for row, token in enumerate(rows) if token >= 0}
    data = loaded.config.data
    source_tag, target_tag = tags_of_pair(data, data.languages)
    settings = transformers.GenerationConfig(
        decoder_start_token_id=SPECIAL_ROWS[EOS],
        eos_token_id=SPECIAL_ROWS[EOS],
        pad_token_id=SPECIAL_ROWS[PAD],
        forced_bos_token_id=own[loaded.tokenizer.target.tags[target_tag]],
        suppress_tokens=[own[i] for i in excluded_ids(loaded.config.decoding)],
        max_new_tokens=MAX_TRANSLATION,
        output_logits=True,
        return_dict_in_generate=True,
    )
    model.generation_config = settings
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.src_lang = source_tag.strip("<>")
    pieces = {row: loaded.tokenizer.target.pieces[token] for token, row in own.items()}
    return [translate_text(model, tokenizer, pieces, text, given=1) for text in texts]
