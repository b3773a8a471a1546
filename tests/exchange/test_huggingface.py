"""An imported Marian model of Hugging Face computes what transformers computes with the folder."""

import random
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
import torch

pytest.importorskip("transformers")

from transformers import MarianMTModel, MarianTokenizer

from nmt.config import DecodingConfig
from nmt.data.tokens.batch import collate_source
from nmt.data.tokens.tokenizer import BOS, EOS
from nmt.exchange.huggingface import import_huggingface
from nmt.exchange.imported import ImportedModel, write_run
from nmt.load_run import load_run
from nmt.run_directory import LoadedModel
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
OFFSET = 30  # tokens that a translation may be longer than its source
EARLY = "never"  # transformers' name for the exact end of beam search, which is ours


class Pair(NamedTuple):
    """A model in transformers, and the same model as a run."""

    folder: Path
    imported: ImportedModel
    run: LoadedModel
    model: Any
    tokenizer: Any

    def rows(self, side: int) -> list[int]:
        """The row of each of our ids of source (0) or target (1); -1: it has none."""
        vocabulary = self.imported.vocabularies[side]
        ours = (self.run.tokenizer.source, self.run.tokenizer.target)[side]
        specials = {i: vocabulary.specials.get(i, -1) for i in range(4)}
        names = {row: piece for piece, row in vocabulary.rows.items()}
        holes = [row for row in range(vocabulary.size) if row not in names]
        spelled = dict(vocabulary.rows) | {f"<row {row}>": row for row in holes}
        return [specials.get(i, spelled.get(piece, -1)) for i, piece in enumerate(ours.pieces)]


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
    run = load_run(parent / "run", torch.device("cpu"))
    return Pair(folder, imported, run, model, MarianTokenizer.from_pretrained(folder))


def by_length(rows: list[list[int]]) -> dict[int, list[int]]:
    """Return the indices of the texts of each length: in such a batch nothing is padded."""
    groups: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(len(row), []).append(i)
    return groups


def generate(pair: Pair, sources: list[list[int]], beams: int, penalty: float) -> list[list[int]]:
    """Return what transformers translates sources of one length to: rows without start and EOS."""
    limits = {"max_length": len(sources[0]) + OFFSET + 1, "length_penalty": penalty}
    found = pair.model.generate(
        torch.tensor(sources), num_beams=beams, do_sample=False, early_stopping=EARLY, **limits
    )
    return [[*row, 0][1 : [*row, 0].index(0, 1)] for row in found.tolist()]


def test_log_probabilities_are_those_of_transformers(pair: Pair) -> None:
    source_rows, target_rows = pair.rows(0), pair.rows(1)
    text = sentences(1, seed=5)[0]
    source = pair.run.tokenizer.source.encode([text])[0]
    draw = torch.Generator().manual_seed(2)
    known = [i for i, row in enumerate(target_rows) if i > EOS and row >= 0]
    target = [BOS, *(known[i] for i in torch.randint(len(known), (20,), generator=draw).tolist())]
    with torch.inference_mode():
        ours = pair.run.model(torch.tensor([source]), torch.tensor([target]))[0]
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
            ours = [rows[i] for i in pair.run.tokenizer.source.encode([text])[0]]
            assert ours == pair.tokenizer(text)["input_ids"], text


def test_a_language_tag_is_one_row_at_the_start_of_a_text_alone(pair: Pair) -> None:
    tag, known = ">>fra<<", ">>fra<<" in pair.imported.vocabularies[0].rows
    encode, pieces = pair.run.tokenizer.source.encode, pair.run.tokenizer.source.pieces
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
        ours = pair.run.tokenizer.target.decode([ids])[0]
        assert ours.strip() == pair.tokenizer.decode([rows[i] for i in ids])


def test_greedy_translations_are_those_of_transformers(pair: Pair) -> None:
    assert not differing(pair, sentences(40, seed=7), beams=1)


@pytest.mark.slow
def test_many_greedy_translations(pair: Pair) -> None:
    assert not differing(pair, sentences(400, seed=8), beams=1)


@pytest.mark.slow
@pytest.mark.parametrize("normalization", ["none", "average"])
def test_beam_search_finds_what_transformers_finds(
    pair: Pair, normalization: Literal["none", "average"]
) -> None:
    assert len(differing(pair, sentences(400, seed=9), 4, normalization)) <= 2


def differing(
    pair: Pair, texts: list[str], beams: int, normalization: Literal["none", "average"] = "average"
) -> list[tuple[list[int], list[int]]]:
    """Return the rows of the translations by both programs that differ.

    At the limit of the length transformers forces an EOS, which costs nothing, and we do not. So
    beam search may choose differently if a translation is as long as that.
    """
    source_rows, target_rows = pair.rows(0), pair.rows(1)
    own = {row: i for i, row in enumerate(source_rows) if row >= 0}
    rows = pair.tokenizer(texts)["input_ids"]
    settings = DecodingConfig(
        beam_size=beams, max_length_offset=OFFSET, length_normalization=normalization
    )
    different = []
    for indices in by_length(rows).values():
        sources = [rows[i] for i in indices]
        ids = collate_source([[own[row] for row in source] for source in sources])
        if beams == 1:
            best = greedy_search(pair.run.model, ids, settings)
        else:
            best = [found[0] for found in beam_search(pair.run.model, ids, settings)]
        last = len(sources[0]) + OFFSET - 1
        penalty = float(normalization == "average")
        for found, theirs in zip(best, generate(pair, sources, beams, penalty), strict=True):
            ours = [target_rows[i] for i in found.tokens if i != EOS]
            longest = max(len(ours), len(theirs))
            if beams == 1 and ours[:last] != theirs or ours != theirs and longest < last:
                different.append((ours, theirs))
    return different
