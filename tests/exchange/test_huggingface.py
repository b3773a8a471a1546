"""An imported Marian model of Hugging Face computes what transformers computes with the folder."""

import copy
import random
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

pytest.importorskip("transformers")

from transformers import MarianMTModel, MarianTokenizer

from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import BOS, EOS, PAD, UNK
from nmt.errors import ExchangeError
from nmt.exchange.huggingface import import_huggingface, read_decoding, warn_of_search
from nmt.exchange.imported import ImportedModel, write_run
from nmt.recipe.config import DecodingConfig
from nmt.run.model import LoadedModel, load_model
from nmt.search.beam_search import beam_search
from nmt.search.sampling import greedy_search
from tests.exchange.huggingface_models import ODD, sentences, write_model

VARIANTS: dict[str, dict[str, Any]] = {
    "relu": {},
    "swish": {"activation_function": "swish"},
    "gelu": {"activation_function": "gelu"},
    "bpe": {"kind": "bpe", "tags": True},
    "holes": {"holes": True, "tags": True},
    "bpe with holes": {"kind": "bpe", "holes": True},
    "separate": {"separate": True},
    "untied": {"separate": True, "tie_word_embeddings": False},
    "pickle": {"pickle": True},
    "deep-shallow": {"encoder_layers": 4, "decoder_layers": 1},
}
QUICK = ("separate",)
BASE = {"d_model": 512, "encoder_layers": 6, "decoder_layers": 6}
BASE |= {f"{stack}_attention_heads": 8 for stack in ("encoder", "decoder")}
BASE |= {f"{stack}_ffn_dim": 2048 for stack in ("encoder", "decoder")}
BIG = BASE | {"d_model": 1024}
BIG |= {f"{stack}_attention_heads": 16 for stack in ("encoder", "decoder")}
BIG |= {f"{stack}_ffn_dim": 4096 for stack in ("encoder", "decoder")}
SHAPES: dict[str, dict[str, Any]] = {
    **VARIANTS,
    "base": BASE | {"vocab_size": 8000, "activation_function": "swish"},
    "tc-big": BIG,
}
OFFSET = 30  # tokens that a translation may be longer than its source
EXACT_END = "never"  # transformers' name for the exact end of beam search, which is ours
BEAM = DecodingConfig(beam_size=4, max_length_offset=OFFSET, length_normalization="average")
SEARCHES = {
    "average": BEAM,
    "none": BEAM.model_copy(update={"length_normalization": "none"}),
    "early stopping": BEAM.model_copy(update={"early_stopping": True}),
}


class Pair(NamedTuple):
    """A model in transformers, and the same model as a run."""

    folder: Path
    imported: ImportedModel
    loaded: LoadedModel
    model: Any
    tokenizer: Any

    def rows(self, side: int) -> list[int]:
        """The row of each of our ids of source (0) or target (1); -1: it has none."""
        vocabulary = self.imported.vocabularies[side]
        ours = (self.loaded.tokenizer.source, self.loaded.tokenizer.target)[side]
        specials = {i: vocabulary.specials.get(i, -1) for i in range(4)}
        names = {row: piece for piece, row in vocabulary.rows.items()}
        holes = [row for row in range(vocabulary.size) if row not in names]
        spelled = dict(vocabulary.rows) | {f"<row {row}>": row for row in holes}
        return [specials.get(i, spelled.get(piece, -1)) for i, piece in enumerate(ours.pieces)]


class Translated(NamedTuple):
    """The rows of one translation by both programs, without EOS."""

    text: str
    ours: list[int]
    theirs: list[int]
    longest: int
    """tokens that fit within the limit before an EOS"""


@pytest.fixture(scope="module", params=VARIANTS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return import_pair(tmp_path_factory.mktemp("models"), VARIANTS[request.param])


def import_pair(parent: Path, settings: dict[str, Any]) -> Pair:
    folder = parent / "model"
    write_model(folder, **settings)
    imported = import_huggingface(folder)
    write_run(imported, parent / "run")
    model: Any = MarianMTModel.from_pretrained(folder)
    model.eval()
    loaded = load_model(parent / "run", torch.device("cpu"))
    return Pair(folder, imported, loaded, model, MarianTokenizer.from_pretrained(folder))


def by_length(rows: list[list[int]]) -> dict[int, list[int]]:
    """Return the indices of the texts of each length: in such a batch nothing is padded."""
    groups: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(len(row), []).append(i)
    return groups


def generate(pair: Pair, sources: list[list[int]], settings: DecodingConfig) -> list[list[int]]:
    """Return what transformers translates sources of one length to: rows without start and EOS."""
    found = pair.model.generate(
        torch.tensor(sources),
        num_beams=settings.beam_size,
        do_sample=False,
        max_length=len(sources[0]) + OFFSET + 1,
        length_penalty=float(settings.length_normalization == "average"),
        early_stopping=settings.early_stopping or EXACT_END,
    )
    return [[*row, 0][1 : [*row, 0].index(0, 1)] for row in found.tolist()]


def translate(pair: Pair, texts: list[str], settings: DecodingConfig) -> list[Translated]:
    """Translate by both programs, in batches of texts of one length."""
    source_rows, target_rows = pair.rows(0), pair.rows(1)
    own = {row: i for i, row in enumerate(source_rows) if row >= 0}
    rows = pair.tokenizer(texts)["input_ids"]
    translated = []
    for indices in by_length(rows).values():
        sources = [rows[i] for i in indices]
        ids = collate_source([[own[row] for row in source] for source in sources])
        if settings.beam_size == 1:
            best = greedy_search(pair.loaded.model, ids, settings)
        else:
            best = [found[0] for found in beam_search(pair.loaded.model, ids, settings)]
        longest = len(sources[0]) + OFFSET - 1
        of_others = generate(pair, sources, settings)
        for text, found, theirs in zip([texts[i] for i in indices], best, of_others, strict=True):
            ours = [target_rows[i] for i in found.tokens if i != EOS]
            translated.append(Translated(text, ours, theirs, longest))
    return translated


def reaches_limit(one: Translated) -> bool:
    return max(len(one.ours), len(one.theirs)) >= one.longest


def in_float64(pair: Pair) -> Pair:
    loaded = replace(pair.loaded, weights=copy.deepcopy(pair.loaded.model).double())
    return pair._replace(loaded=loaded, model=copy.deepcopy(pair.model).double())


def differing(pair: Pair, texts: list[str]) -> list[Translated]:
    """Return what differs of the greedy translations by both programs.

    The last token at the limit of the length is always EOS in transformers, and ours is not.
    """
    found = translate(pair, texts, DecodingConfig(beam_size=1, max_length_offset=OFFSET))
    return [one for one in found if one.ours[: one.longest] != one.theirs]


def test_log_probabilities_are_those_of_transformers(pair: Pair) -> None:
    source_rows, target_rows = pair.rows(0), pair.rows(1)
    text = sentences(1, seed=5)[0]
    source = pair.loaded.tokenizer.source.encode([text])[0]
    draw = torch.Generator().manual_seed(2)
    known = [i for i, row in enumerate(target_rows) if i > EOS and row >= 0]
    target = [BOS, *(known[i] for i in torch.randint(len(known), (20,), generator=draw).tolist())]
    with torch.inference_mode():
        ours = pair.loaded.model(torch.tensor([source]), torch.tensor([target]))[0]
        theirs = pair.model(
            input_ids=torch.tensor([[source_rows[i] for i in source]]),
            decoder_input_ids=torch.tensor([[target_rows[i] for i in target]]),
        ).logits[0]
    kept = [i for i, row in enumerate(target_rows) if row >= 0]
    rows = [target_rows[i] for i in kept]
    torch.testing.assert_close(ours[:, kept], theirs[:, rows], atol=1e-5, rtol=1e-5)
    # The softmax counts all rows of the matrix, and the ids without a row count as nothing.
    assert sorted(rows) == list(range(theirs.shape[1]))
    log_p = ours.log_softmax(-1)[:, kept]
    torch.testing.assert_close(log_p, theirs.log_softmax(-1)[:, rows], atol=1e-5, rtol=1e-5)


def test_rows_of_a_text_are_those_of_marian_tokenizer(pair: Pair) -> None:
    rows, spm = pair.rows(0), pair.tokenizer.spm_source
    vocabulary = pair.imported.vocabularies[0].rows
    for text in sentences(100, seed=6) + ODD:
        pieces = spm.encode(text, out_type=str)
        known = {piece for piece in pieces if not spm.is_unknown(spm.piece_to_id(piece))}
        # Pieces without a row are unknown there. Here they are split into pieces that have one.
        # Special symbols and tags of no language are plain text here; there they are looked up.
        if known <= vocabulary.keys() and not text.startswith((">>", "</s>")):
            ours = [rows[i] for i in pair.loaded.tokenizer.source.encode([text])[0]]
            assert ours == pair.tokenizer(text)["input_ids"], text


def test_a_language_tag_is_one_row_at_the_start_of_a_text_alone(pair: Pair) -> None:
    tag, known = ">>fra<<", ">>fra<<" in pair.imported.vocabularies[0].rows
    encode, pieces = pair.loaded.tokenizer.source.encode, pair.loaded.tokenizer.source.pieces
    plain, tagged, inside = encode(["the cat.", f"{tag}the cat.", f"the {tag} cat."])
    assert ([pieces[tagged[0]], *tagged[1:]] == [tag, *plain]) == known
    assert tag not in [pieces[i] for i in inside]


def test_decoded_texts_are_those_of_marian_tokenizer(pair: Pair) -> None:
    rows, pieces = pair.rows(1), pair.imported.vocabularies[1].rows
    with_piece = set(pieces.values())
    ordinary = [i for i, row in enumerate(rows) if i > EOS and row in with_piece]
    draw = random.Random(3)
    for _ in range(100):
        ids = draw.choices(ordinary, k=8)
        ours = pair.loaded.tokenizer.target.decode([ids])[0]
        assert ours.strip() == pair.tokenizer.decode([rows[i] for i in ids])


def test_greedy_translations_are_those_of_transformers(pair: Pair) -> None:
    assert not differing(pair, sentences(40, seed=7))


@pytest.mark.slow
def test_many_greedy_translations(pair: Pair) -> None:
    assert not differing(pair, sentences(400, seed=8))


@pytest.mark.parametrize(
    "shape",
    [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in SHAPES],
)
def test_beam_search_translates_as_transformers_does(shape: str, tmp_path: Path) -> None:
    """At least 398 of 400 are equal in float32; the others are in float64, or at the limit."""
    settings = {"d_model": 64} | SHAPES[shape]
    settings |= {"ending": 2 if shape == "tc-big" else 1}
    settings |= {"init_std": 0.5 / settings["d_model"] ** 0.5}
    pair = import_pair(tmp_path, settings)
    starts = (text.split()[: 2 + i % 4] for i, text in enumerate(sentences(2000, seed=9)))
    texts = list(dict.fromkeys(map(" ".join, starts)))[:400]
    searches = SEARCHES if shape in VARIANTS else {"average": BEAM}  # large models take minutes
    for name, search in searches.items():
        found = translate(pair, texts, search)
        different_texts = [one.text for one in found if one.ours != one.theirs]
        equal, at_limit = len(found) - len(different_texts), sum(map(reaches_limit, found))
        lengths = {len(one.theirs) for one in found}
        figures = f"{shape}, {name}: {equal} of {len(texts)} equal, {at_limit} at the limit"
        different = len({tuple(one.theirs) for one in found})
        print(f"{figures}, {different} different, {min(lengths)} to {max(lengths)} tokens")
        assert equal >= 398, figures
        # there transformers ends a translation for nothing, which we do not
        assert at_limit <= 2, figures
        exact = translate(in_float64(pair), different_texts, search) if different_texts else []
        assert [one for one in exact if one.ours != one.theirs and not reaches_limit(one)] == []
        assert len(lengths) >= 4, sorted(lengths)
        assert different >= 10, "the translations hardly depend on the text"


def test_weights_may_be_in_several_files(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    write_model(folder)
    expected = import_huggingface(folder).weights
    model: Any = MarianMTModel.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="9KB")
    files = sorted(path.name for path in folder.glob("*.safetensors"))
    assert len(files) > 2
    imported = import_huggingface(folder)
    assert imported.weights.keys() == expected.keys()
    assert all(torch.equal(imported.weights[name], expected[name]) for name in expected)
    assert set(files) <= imported.provenance["sha256"].keys()
    (folder / files[0]).unlink()
    message = r"model-\*.safetensors: the weight '.*' is missing"
    with pytest.raises(ExchangeError, match=message):
        import_huggingface(folder)


PAD_ROW, UNK_ROW, EOS_ROW = 9, 1, 0
SPECIAL_ROWS = {PAD: PAD_ROW, UNK: UNK_ROW, BOS: PAD_ROW, EOS: EOS_ROW}


@pytest.mark.parametrize(
    ("settings", "changes", "left_out"),
    [
        ({"bad_words_ids": [[PAD_ROW]], "forced_eos_token_id": EOS_ROW}, {}, []),
        ({"bad_words_ids": [[PAD_ROW], [UNK_ROW], [EOS_ROW]]}, {"allow_unknown": False}, []),
        ({"bad_words_ids": None, "suppress_tokens": None, "sequence_bias": {}}, {}, []),
        ({"bad_words_ids": [[5]]}, {}, ["bad_words_ids"]),
        ({"bad_words_ids": [[UNK_ROW], [4, 5]]}, {"allow_unknown": False}, ["bad_words_ids"]),
        ({"suppress_tokens": [UNK_ROW, PAD_ROW]}, {"allow_unknown": False}, []),
        ({"suppress_tokens": [EOS_ROW]}, {}, ["suppress_tokens"]),
        ({"begin_suppress_tokens": [PAD_ROW]}, {}, []),
        ({"begin_suppress_tokens": [UNK_ROW]}, {}, ["begin_suppress_tokens"]),
        (
            {"begin_suppress_tokens": [UNK_ROW], "suppress_tokens": [UNK_ROW]},
            {"allow_unknown": False},
            [],
        ),
        ({"forced_eos_token_id": [EOS_ROW]}, {}, []),
        ({"forced_eos_token_id": 7}, {}, ["forced_eos_token_id"]),
        ({"forced_bos_token_id": 7}, {}, ["forced_bos_token_id"]),
        ({"repetition_penalty": 1.0, "num_beam_groups": 1, "do_sample": False}, {}, []),
        ({"repetition_penalty": 1.2}, {}, ["repetition_penalty"]),
        (
            {"do_sample": True, "num_beam_groups": 2, "diversity_penalty": 0.5},
            {},
            ["diversity_penalty", "do_sample", "num_beam_groups"],
        ),
        ({"force_words_ids": [[3]], "constraints": []}, {}, ["force_words_ids"]),
        ({"min_length": 1}, {}, []),
        ({"min_length": 8}, {"min_length": 7}, []),
        ({"min_length": 3, "min_new_tokens": 8}, {"min_length": 8}, []),
        ({"length_penalty": 0.6}, {}, ["length_penalty"]),
    ],
)
def test_rules_of_a_search_are_obeyed_or_named(
    settings: dict[str, Any],
    changes: dict[str, Any],
    left_out: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain = DecodingConfig(beam_size=4, length_normalization="average")
    assert read_decoding(settings, UNK_ROW, "here") == plain.model_copy(update=changes)
    warn_of_search(settings, SPECIAL_ROWS, "here")
    warnings = capsys.readouterr().err.splitlines()
    assert [line.split("here: ")[1].split(":")[0] for line in warnings] == left_out


def test_the_shortest_length_is_that_of_transformers(tmp_path: Path) -> None:
    pair = import_pair(tmp_path, {"ending": 1})
    target_rows = pair.rows(1)
    own = {row: i for i, row in enumerate(pair.rows(0)) if row >= 0}
    limits: dict[str, Any] = {"num_beams": 1, "do_sample": False, "max_length": 40}
    lengths = set()
    for rule in ({}, {"min_length": 14}, {"min_new_tokens": 14}):
        settings = read_decoding(rule | {"num_beams": 1}, UNK_ROW, "here")
        for row in pair.tokenizer(sentences(6, seed=11))["input_ids"]:
            ids = collate_source([[own[one] for one in row]])
            [best] = greedy_search(pair.loaded.model, ids, settings)
            found = [*(target_rows[i] for i in best.tokens), EOS_ROW]
            [theirs] = pair.model.generate(torch.tensor([row]), **limits, **rule).tolist()
            assert found[:38] == theirs[1:39]  # the last one at the limit is always EOS there
            assert len(best.tokens) >= settings.min_length
            lengths.add(len(best.tokens))
    assert min(lengths) < 13  # without a rule, translations are shorter
