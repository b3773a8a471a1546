"""Multi30k: descriptions of photographs in English, German and French (Elliott et al. 2016).

The files of task 1 at a pinned commit, with the size and sha256 of each text.
"""

from pathlib import Path

from nmt.data.corpora.download import Origin, RemoteText, obtain

_COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
_BASE = f"https://raw.githubusercontent.com/multi30k/dataset/{_COMMIT}/data/task1"

# what upstream calls our splits; the test set is the one that most papers score
_TEST = "test_2016_flickr"
_UPSTREAM = {"train": "train", "validation": "val", "test": _TEST}

_RAW = {
    ("train", "de"): (2110398, "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72"),
    ("train", "en"): (1801238, "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6"),
    ("train", "fr"): (2111303, "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d"),
    ("val", "de"): (75981, "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660"),
    ("val", "en"): (63297, "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227"),
    ("val", "fr"): (73924, "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc"),
    (_TEST, "de"): (70649, "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16"),
    (_TEST, "en"): (62076, "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182"),
    (_TEST, "fr"): (72261, "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6"),
}

_TOKENIZED = {
    ("train", "de"): (2150008, "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"),
    ("train", "en"): (1837696, "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"),
    ("train", "fr"): (2235588, "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1"),
    ("val", "de"): (77273, "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"),
    ("val", "en"): (64608, "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"),
    ("val", "fr"): (78242, "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a"),
    (_TEST, "de"): (71917, "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"),
    (_TEST, "en"): (63307, "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"),
    (_TEST, "fr"): (76394, "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836"),
}


def write_raw(folder: Path, languages: tuple[str, str], origin: Origin) -> None:
    """Write the text as it was written, cased and untokenised."""
    for split, name in _UPSTREAM.items():
        for language in languages:
            text = RemoteText(f"{_BASE}/raw/{name}.{language}.gz", *_RAW[name, language])
            obtain(text, folder / f"{split}.{language}", origin)


def write_tokenized(folder: Path, languages: tuple[str, str], origin: Origin) -> None:
    """Write the same lines lower-cased, normalised and tokenised by Moses."""
    for split, name in _UPSTREAM.items():
        for language in languages:
            url = f"{_BASE}/tok/{name}.lc.norm.tok.{language}"
            text = RemoteText(url, *_TOKENIZED[name, language])
            obtain(text, folder / f"{split}.{language}", origin)
