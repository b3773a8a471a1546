"""The sentence splitter of an Argos package, as a graph of ONNX, so that nothing is downloaded.

Argos Translate lets MiniSBD split a text into sentences. MiniSBD reads a file NAME.onnx with the
inputs `units` (B, L), a number for each character, and `features` (B, L, F), and takes the largest
of the outputs (B, L, 3) for each character: 2 ends a sentence. Its settings are in the metadata.
A package without such a file makes it download one for the language at the first translation.

Here the numbers are kinds of characters, and the graph has rules: a mark ends a sentence where a
space and no small letter follow, unless it is the full stop of an abbreviation, initial or ordinal.
"""

import json
import sys
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt.data.text.sentences import abbreviations, has_ordinals
from nmt.exchange.engine import import_engine
from nmt.exchange.onnx_graphs import OPSET, quietly

PADDING, OTHER, STOP, MARK, FULL_WIDTH_MARK, CLOSING, OPENING, SMALL = range(8)
"""kinds of characters; the first two have the numbers that MiniSBD's models give them"""
KINDS = {
    STOP: ".",
    MARK: "!?…‼⁇⁈⁉؟۔܀।॥՜՞։።፧༎",
    FULL_WIDTH_MARK: "。！？｡︒",
    CLOSING: ")]}\"'’”»›」』）】",
    OPENING: "([{“„‘‚«‹「『（【¿¡",
}
SPACE, CAPITAL, DIGIT, START = range(4)
FEATURES = ["space_before", "capitalized", "numeric", "start_of_para"]
"""the features of a character, each 0 or 1; after them come those of the dictionary: whether a word
of it begins with this character and 1, 2, … more, and whether one ends with it"""


class SentenceEnds(nn.Module):
    """The rules; `longest` is the most characters of an abbreviation before its full stop."""

    def __init__(self, longest: int, ordinals: bool) -> None:
        super().__init__()
        self.longest, self.ordinals = longest, ordinals

    def forward(self, units: Tensor, features: Tensor) -> Tensor:
        """Return (B, L, 3): 2 is the largest where a sentence ends, else 0."""
        kind = F.one_hot(units, SMALL + 1).float()  # (B, L, kinds)
        stop = kind[..., STOP]
        space, capital, digit = (features[..., i] for i in (SPACE, CAPITAL, DIGIT))
        # a word begins at the start, after a space, after an opening bracket or quotation mark
        begins = _any(features[..., START], _before(space), _before(kind[..., OPENING]))
        known = features[..., len(FEATURES) + self.longest :]  # (B, L, longest)
        words = [known[..., n - 1] * _before(begins, n) for n in range(1, self.longest + 1)]
        initial = _before(_any(capital, kind[..., SMALL])) * _any(_before(begins), _before(stop, 2))
        ordinal = _before(digit) * _any(_before(begins), _before(digit) * _before(begins, 2))
        abbreviation = stop * _any(*words, initial, ordinal * float(self.ordinals))
        marks = _any(stop - abbreviation, kind[..., MARK])
        closing, wide = kind[..., CLOSING], kind[..., FULL_WIDTH_MARK]
        for _ in range(2):  # the quotation marks and brackets after a mark belong to the sentence
            marks = _any(marks, closing * _before(marks))
            wide = _any(wide, closing * _before(wide))
        ends = marks * _after(space) * (1 - _after(kind[..., SMALL], 2))
        wide = wide * (1 - _after(_any(wide, closing)))
        end = _any(ends, wide)[..., None]
        return torch.cat([1 - end, torch.zeros_like(end), end], -1)


def _any(*conditions: Tensor) -> Tensor:
    """Return 1 where one of several conditions, each 0 or 1, is 1."""
    return torch.stack(conditions).amax(0)


def _before(x: Tensor, count: int = 1) -> Tensor:
    """Return what x (B, L) is at the place `count` characters before; 0 before the first."""
    return F.pad(x, (count, 0))[:, :-count]


def _after(x: Tensor, count: int = 1) -> Tensor:
    """Return what x (B, L) is at the place `count` characters after; 0 behind the last."""
    return F.pad(x, (0, count))[:, count:]


def write_splitter(language: str, path: Path) -> None:
    """Write the splitter of a language, by its code; one without word lists gets those of all.

    Raises:
        MissingExtraError: onnx is not installed.
        OSError: the file cannot be written.
    """
    onnx = import_engine("onnx", "the format argos")
    words = [f"{word}.".lower() for word in sorted(abbreviations(language))]
    longest = max(map(len, words)) - 1
    module = SentenceEnds(longest, has_ordinals(language))
    example = torch.ones(1, 4, dtype=torch.long), torch.zeros(1, 4, len(FEATURES) + 2 * longest)
    axes = {name: {0: "texts", 1: "characters"} for name in ("units", "features", "ends")}
    with quietly():
        torch.onnx.export(
            module,
            example,
            str(path),
            input_names=["units", "features"],
            output_names=["ends"],
            dynamic_axes=axes,
            opset_version=OPSET,
            dynamo=False,
        )
    model = onnx.load(str(path))
    config = {"feat_funcs": FEATURES, "use_dictionary": True, "num_dict_feat": longest}
    numbers = {"<PAD>": PADDING, "<UNK>": OTHER}
    numbers |= {chr(i): SMALL for i in range(sys.maxunicode) if chr(i).islower()}
    numbers |= {character: kind for kind, characters in KINDS.items() for character in characters}
    settings = {"config": {**config, "batch_size": 32}, "lexicon": words}
    settings["vocab"] = {"lang": language, "_unit2id": numbers}
    metadata = {name: json.dumps(value) for name, value in settings.items()}
    onnx.helper.set_model_props(model, {"lang_code": language, **metadata})
    onnx.save(model, str(path))
