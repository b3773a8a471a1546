"""An imported M2M-100 or NLLB model computes what transformers computes with the folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

pytest.importorskip("transformers")

from transformers import AutoTokenizer, M2M100ForConditionalGeneration

from nmt.data.language_tags import LanguageTags
from nmt.data.tokens.tokenizer import EOS
from nmt.exchange.imported import ImportedModel, write_run
from nmt.exchange.m2m100 import import_m2m100
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel, load_model
from nmt.search.searcher import Searcher
from tests.exchange.huggingface_models import sentences
from tests.exchange.m2m100_models import write_model

OFFSET = 20
GREEDY = DecodingConfig(beam_size=1, max_length_offset=OFFSET, length_normalization="average")
BEAM = GREEDY.model_copy(update={"beam_size": 4})
SHAPES: dict[str, dict[str, Any]] = {
    "nllb": {},
    "m2m": {"kind": "m2m"},
    "deep-shallow": {"encoder_layers": 4, "decoder_layers": 1},
    "wide": {
        "d_model": 128,
        "encoder_ffn_dim": 256,
        "decoder_ffn_dim": 256,
        "decoder_layers": 3,
        "init_std": 0.1,
        "ending": 3.0,  # translations of many lengths
    },
}


class Pair(NamedTuple):
    """A model in transformers, and the same model as a run."""

    imported: ImportedModel
    loaded: LoadedModel
    model: Any
    tokenizer: Any
    rows: list[int]
    """the row of each of our ids"""


@pytest.fixture(scope="module", params=SHAPES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return import_pair(tmp_path_factory.mktemp("models"), **SHAPES[request.param])


def import_pair(parent: Path, **settings: Any) -> Pair:
    folder = parent / "model"
    write_model(folder, **settings)
    imported = import_m2m100(folder)
    vocabulary, _ = write_run(imported, parent / "run")
    model: Any = M2M100ForConditionalGeneration.from_pretrained(folder)
    loaded = load_model(parent / "run", torch.device("cpu"))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    return Pair(imported, loaded, model.eval(), tokenizer, vocabulary.rows)


def codes(pair: Pair) -> tuple[str, str]:
    known = pair.imported.language_tags
    return next(c for c in known if c[:2] == "en"), next(c for c in known if c[:2] == "de")


def encode(pair: Pair, texts: Sequence[str]) -> tuple[list[list[int]], int]:
    """Return our source ids of English texts, and the id that a German translation begins with."""
    tags = "".join(f">>{code}<<" for code in codes(pair))
    rows = pair.loaded.tokenizer.source.encode([tags + text for text in texts])
    languages = LanguageTags(pair.loaded.config.data, pair.loaded.tokenizer)
    divided = [languages.divide(ids) for ids in rows]
    assert divided[0][1] is not None
    return [ids for ids, _ in divided], divided[0][1]


def generate(pair: Pair, source: list[list[int]], begin: int, beam: int) -> list[list[int]]:
    """Return what transformers translates rows of one length to, without start and </s>."""
    found = pair.model.generate(
        torch.tensor(source),
        num_beams=beam,
        do_sample=False,
        max_length=len(source[0]) + OFFSET + 1,
        length_penalty=1.0,
        early_stopping="never" if beam > 1 else False,
        forced_bos_token_id=begin,
        suppress_tokens=[0, 1],  # <s> and <pad>, which no translation of ours has
    )
    return [[*row, 2][1 : [*row, 2].index(2, 1)] for row in found.tolist()]


def differing(pair: Pair, texts: list[str], settings: DecodingConfig, native: bool) -> list[str]:
    """Return the texts whose translations differ; they are translated in batches of one length."""
    ids, begin = encode(pair, texts)
    searcher = Searcher(pair.loaded, settings)
    if native:
        assert searcher.native
    else:
        vars(searcher)["native"] = None
    by_length: dict[int, list[int]] = {}
    for i, row in enumerate(ids):
        by_length.setdefault(len(row), []).append(i)
    different, lengths, found_rows = [], set(), set()
    for group in by_length.values():
        sources = [ids[i] for i in group]
        begins = [begin] * len(group)
        ours = searcher.search(sources, group, [None] * len(group), 1, begins)
        theirs = generate(
            pair,
            [[pair.rows[i] for i in row] for row in sources],
            pair.rows[begin],
            settings.beam_size,
        )
        for i, (best, *_), row in zip(group, ours, theirs, strict=True):
            if [pair.rows[token] for token in best.tokens] != row:
                different.append(texts[i])
            lengths.add(len(row))
            found_rows.add(tuple(row))
    print(f"{len(texts) - len(different)} of {len(texts)}, lengths {sorted(lengths)}")
    assert len(lengths) > 1
    assert len(found_rows) > 3, "the translations hardly depend on the text"
    return different


def test_rows_of_a_text_are_those_of_the_tokenizer(pair: Pair) -> None:
    source, target = codes(pair)
    pair.tokenizer.src_lang = source
    texts = [*sentences(50, seed=3), "世界 🙂 Ωmega", "ＦＵＬＬ ﬁ"]
    ids, begin = encode(pair, texts)
    for text, row in zip(texts, ids, strict=True):
        assert [pair.rows[i] for i in row] == pair.tokenizer(text)["input_ids"], text
    token = target if len(target) > 2 else f"__{target}__"
    assert pair.rows[begin] == pair.tokenizer.convert_tokens_to_ids(token)


def test_logits_are_those_of_transformers(pair: Pair) -> None:
    [source], begin = encode(pair, sentences(1, seed=5))
    target = [begin, *source[1:-1], EOS]
    with torch.inference_mode():
        ours = pair.loaded.model(torch.tensor([source]), torch.tensor([[2, *target]]))[0]
        theirs = pair.model(
            input_ids=torch.tensor([[pair.rows[i] for i in source]]),
            decoder_input_ids=torch.tensor([[2, *(pair.rows[i] for i in target)]]),
        ).logits[0]
    torch.testing.assert_close(ours, theirs[:, pair.rows], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("native", [False, True])
def test_greedy_translations_are_those_of_transformers(pair: Pair, native: bool) -> None:
    assert not differing(pair, sentences(40, seed=7), GREEDY, native)


@pytest.mark.parametrize("native", [False, True])
def test_beam_search_translates_as_transformers_does(pair: Pair, native: bool) -> None:
    assert not differing(pair, sentences(40, seed=8), BEAM, native)


@pytest.mark.slow
@pytest.mark.parametrize("native", [False, True])
def test_of_400_translations(pair: Pair, native: bool) -> None:
    """All are equal greedily, and 398 with a beam, where rounding decides between two."""
    starts = (text.split()[: 2 + i % 5] for i, text in enumerate(sentences(2000, seed=9)))
    texts = list(dict.fromkeys(map(" ".join, starts)))[:400]
    assert len(texts) == 400
    assert not differing(pair, texts, GREEDY, native)
    assert len(differing(pair, texts, BEAM, native)) <= 2
