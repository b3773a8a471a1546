"""Models of many languages go out to transformers and CTranslate2, which translate the same."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
import safetensors.torch
import torch

pytest.importorskip("transformers")
pytest.importorskip("ctranslate2")

from nmt.data.language_tags import LanguageTags, tags_of_pair
from nmt.errors import ExchangeError
from nmt.exchange.argos import export_argos
from nmt.exchange.ctranslate2 import export_ctranslate2, translate_with_ctranslate2
from nmt.exchange.imported import write_run
from nmt.exchange.m2m100 import import_m2m100
from nmt.exchange.m2m100_export import export_m2m100, translate_as_m2m100
from nmt.exchange.marian import export_marian
from nmt.exchange.onnx import export_onnx
from nmt.exchange.trimmed import trim
from nmt.exchange.verify import EXACT, verify_translations
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel, load_model
from nmt.search.searcher import Searcher
from tests.exchange.huggingface_models import sentences
from tests.exchange.m2m100_models import write_model

TEXTS = sentences(12, seed=4)
ENGLISH = ("eng_Latn", "deu_Latn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "nllb"
    write_model(folder)
    return folder


@pytest.fixture(scope="module")
def loaded(folder: Path) -> LoadedModel:
    write_run(replace(import_m2m100(folder), languages=ENGLISH), folder.parent / "run")
    return load_model(folder.parent / "run", torch.device("cpu"))


@pytest.fixture(scope="module")
def trimmed(folder: Path) -> LoadedModel:
    imported = trim(import_m2m100(folder), ["English", "de"], TEXTS)
    write_run(replace(imported, languages=ENGLISH), folder.parent / "trimmed")
    return load_model(folder.parent / "trimmed", torch.device("cpu"))


def test_unchanged_weights_go_back_bit_for_bit(
    folder: Path, loaded: LoadedModel, tmp_path: Path
) -> None:
    export_m2m100(loaded, tmp_path)
    ours, theirs = (
        safetensors.torch.load_file(path / "model.safetensors") for path in (tmp_path, folder)
    )
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    for name in ("config.json", "sentencepiece.bpe.model", "special_tokens_map.json"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes(), name
    # the tokenizer in one file is not kept, as it is large; any program can make it of the others
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    verify_translations(loaded, TEXTS, translate_as_m2m100(tmp_path, TEXTS, loaded), EXACT)


def test_ctranslate2_translates_the_same(loaded: LoadedModel, tmp_path: Path) -> None:
    export_ctranslate2(loaded, tmp_path)
    data = loaded.config.data
    found = translate_with_ctranslate2(tmp_path, TEXTS, tags_of_pair(data, data.languages))
    verify_translations(loaded, TEXTS, found, EXACT)


@pytest.mark.parametrize(
    "export", [export_marian, export_onnx, partial(export_argos, quantization="int8")]
)
def test_a_program_that_forces_no_first_token_says_so(
    export: object, loaded: LoadedModel, tmp_path: Path
) -> None:
    assert callable(export)
    with pytest.raises(ExchangeError, match="begins no translation with the tag of its language"):
        export(loaded, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_trimmed_model_translates_text_of_its_pieces_as_before(
    loaded: LoadedModel, trimmed: LoadedModel, tmp_path: Path
) -> None:
    assert trimmed.config.data.language_tags == ["deu_Latn", "eng_Latn"]
    assert trimmed.tokenizer.source.size < loaded.tokenizer.source.size
    split = [model.tokenizer.source.split(text) for model in (loaded, trimmed) for text in TEXTS]
    assert split[: len(TEXTS)] == split[len(TEXTS) :]
    settings = DecodingConfig(beam_size=1, max_length_offset=5)
    pieces = [_translated(model, settings) for model in (loaded, trimmed)]
    known = set(trimmed.tokenizer.target.pieces)
    spelled = [i for i, row in enumerate(pieces[0]) if known.issuperset(row)]
    assert spelled
    assert [pieces[0][i] for i in spelled] == [pieces[1][i] for i in spelled]
    export_m2m100(trimmed, tmp_path)
    verify_translations(trimmed, TEXTS, translate_as_m2m100(tmp_path, TEXTS, trimmed), EXACT)


def _translated(loaded: LoadedModel, settings: DecodingConfig) -> list[list[str]]:
    languages = LanguageTags(loaded.config.data, loaded.tokenizer)
    divided = [languages.divide(ids) for ids in loaded.tokenizer.source.encode(TEXTS)]
    searcher = Searcher(loaded, settings)
    vars(searcher)["native"] = None
    begins = [begin for _, begin in divided if begin is not None]
    ids = [row for row, _ in divided]
    found = searcher.search(ids, [*range(len(ids))], [None] * len(ids), 1, begins)
    return [[loaded.tokenizer.target.pieces[i] for i in best.tokens] for best, *_ in found]
