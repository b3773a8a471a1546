"""Every knob and its default: frozen models, `--set`, errors that name file, line and key.

A default lives in its field below and nowhere else. `nmt train --config C` reads a YAML file of
six sections into one `Config`; unknown keys are refused with the nearest known name.
"""

import difflib
import importlib.resources
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nmt import strict_yaml
from nmt.errors import ConfigError

MAX_CONFIG_BYTES = 1 << 20


class Section(BaseModel):
    """A frozen group of settings that refuses unknown keys and silent conversions."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )


class TextPair(Section):
    """Two line-aligned text files: line n of `target` translates line n of `source`."""

    source: str
    """path of the source side, from the current directory: plain text, .gz, .xz or .zst"""
    target: str
    """path of the target side, with as many lines"""


class DataConfig(Section):
    """Which sentences to learn from, and which to leave out."""

    source_language: str = "en"
    """language code of the text to translate"""
    target_language: str = "de"
    """language code of the translations"""
    corpus: str | None = None
    """a known corpus (`nmt data list`); fills the splits that are not given below"""
    train: TextPair | None = None
    """one's own training text"""
    validation: TextPair | None = None
    """one's own validation text: watched while training, never learnt from"""
    test: TextPair | None = None
    """one's own test text: scored by `nmt eval-bleu`"""
    directory: str = "data"
    """where downloaded corpora and prepared token stores live"""
    max_length: int = Field(256, ge=1)
    """training pairs with a longer side are left out and counted; in subword tokens"""
    max_length_ratio: float | None = Field(None, gt=1)
    """training pairs whose token counts differ by more than this factor are left out"""
    tokenized: bool = False
    """the text is already tokenised, so BLEU counts its tokens as they are"""


class TokenizerConfig(Section):
    """How text becomes ids (SentencePiece)."""

    kind: Literal["bpe", "unigram", "char", "word"] = "bpe"
    """the unit of the vocabulary"""
    vocabulary_size: int = Field(8000, ge=8)
    """entries of each vocabulary, the four special symbols included"""
    shared: bool = True
    """one vocabulary for both languages, or one for each"""
    character_coverage: float = Field(1.0, gt=0, le=1)
    """share of the characters of the training text that get an entry of their own"""
    byte_fallback: bool = False
    """spell unknown characters in bytes instead of writing the unknown symbol"""
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] = "nmt_nfkc"
    """SentencePiece normalisation rule, applied before the text is cut into pieces"""
    sampling: float = Field(0.0, ge=0, lt=1)
    """cut the training text differently each time it is read: for bpe the probability that a merge
    is left out (BPE-dropout), for unigram the sharpness of the choice among segmentations; 0: the
    best segmentation always"""

    @model_validator(mode="after")
    def _sampling_needs_a_choice(self) -> Self:
        if self.sampling and self.kind not in ("bpe", "unigram"):
            raise ValueError(
                f"tokenizer.sampling: {self.sampling} needs kind bpe or unigram, "
                f"got kind {self.kind}, which cuts in one way only; set it to 0"
            )
        return self


class ModelConfig(Section):
    """The Transformer's sizes (paper, table 3); the defaults are `base`."""

    d_model: int = Field(512, ge=2)
    """width of embeddings and of every sub-layer's output"""
    heads: int = Field(8, ge=1)
    """parallel attention heads; d_model is divided among them"""
    d_ff: int = Field(2048, ge=1)
    """inner width of the position-wise feed-forward network"""
    encoder_layers: int = Field(6, ge=1)
    decoder_layers: int = Field(6, ge=1)
    norm: Literal["post", "pre"] = "post"
    """layer norm after the residual sum (the paper) or before each sub-layer"""
    dropout: float = Field(0.1, ge=0, lt=1)
    """on each sub-layer's output and on the sums of embeddings and positions (section 5.4)"""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """on the attention weights; the paper has none"""
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    """inside the feed-forward network, after the ReLU; the paper has none"""
    embeddings: Literal["shared", "target", "separate"] = "shared"
    """shared: source, target and output use one matrix (section 3.4); target: the last two"""
    layer_norm_epsilon: float = Field(1e-6, gt=0)
    initialization_gain: float = Field(1.0, gt=0)
    """factor on the Glorot-uniform matrices; below 1 a layer begins closer to the identity, so that
    a small post-norm model learns with a short warm-up"""

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        if self.d_model % self.heads or self.d_model % 2:
            raise ValueError(
                f"d_model must be even and a multiple of heads, got d_model: {self.d_model}, "
                f"heads: {self.heads}"
            )
        return self


class TrainingConfig(Section):
    """How the weights are found."""

    batch_tokens: int = Field(25_000, ge=1)
    """source and target tokens of one optimiser step, each at most; over all devices"""
    micro_batch_tokens: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    """rows times the longest side computed at once; auto: what suits the device"""
    max_steps: int = Field(100_000, ge=1)
    """optimiser steps in all"""
    schedule: Literal[
        "inverse_square_root", "constant", "linear", "cosine", "one_cycle", "warmup_stable_decay"
    ] = "inverse_square_root"
    """what the learning rate does after the warm-up; Eq. 3 is inverse_square_root"""
    warmup_steps: int = Field(4000, ge=1)
    """steps of linearly rising learning rate (Eq. 3)"""
    peak_learning_rate: float | None = Field(None, gt=0)
    """the rate at the end of the warm-up; null: the paper's d_model^-0.5 * warmup_steps^-0.5"""
    cooldown_steps: int = Field(0, ge=0)
    """over the last so many steps the rate of any schedule falls linearly to zero; 0: none, but a
    fifth of max_steps under warmup_stable_decay"""
    adam_beta1: float = Field(0.9, ge=0, lt=1)
    adam_beta2: float = Field(0.98, ge=0, lt=1)
    adam_epsilon: float = Field(1e-9, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    """decoupled weight decay (AdamW); the paper has none"""
    clip_norm: float | None = Field(None, gt=0)
    """largest norm of the gradient; null: no clipping, as in the paper"""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """probability mass spread over the wrong symbols (section 5.4)"""
    log_every: int = Field(50, ge=1)
    """steps between lines of metrics.jsonl"""
    validate_every: int = Field(1000, ge=1)
    """steps between validations: loss and BLEU"""
    validation_bleu: bool = True
    """translate the validation set greedily at each validation"""
    checkpoint_every: int = Field(1500, ge=1)
    """steps between checkpoints; 1500 steps of `base` took the authors ten minutes"""
    average_checkpoints: int = Field(5, ge=1)
    """how many of the last checkpoints `averaged/` is the mean of (section 6.1)"""
    early_stopping: int | None = Field(None, ge=1)
    """stop after so many validations without a better BLEU (or loss); null: never"""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """auto: bf16 where the processor has it, else fp32"""
    threads: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    """CPU threads; auto: one for each core this process may use"""


class DecodingConfig(Section):
    """How the best translation is searched for (section 6.1)."""

    beam_size: int = Field(4, ge=1)
    """hypotheses kept for each sentence; 1 is greedy search"""
    length_penalty: float = Field(0.6, ge=0)
    """alpha in ((5 + length) / 6)^alpha; 0: none"""
    max_length_offset: int = Field(50, ge=1)
    """the longest translation has as many tokens as the source plus this"""
    batch_tokens: int = Field(4096, ge=1)
    """padded source tokens translated at once"""


class Config(Section):
    """One recipe: everything that decides what is trained and how it translates."""

    data: DataConfig = DataConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    seed: int = Field(1, ge=0, lt=1 << 63)
    """fixes initial weights, dropout and the order of the data"""

    @model_validator(mode="after")
    def _sections_agree(self) -> Self:
        if self.model.embeddings == "shared" and not self.tokenizer.shared:
            raise ValueError(
                "model.embeddings: shared needs tokenizer.shared: true; "
                "with one vocabulary for each language write embeddings: target"
            )
        return self


def _known_keys(section: type[BaseModel], path: Iterable[str]) -> list[str]:
    """The keys allowed inside the section that `path` leads to."""
    for name in path:
        annotation = section.model_fields[name].annotation
        options = [annotation, *getattr(annotation, "__args__", ())]
        section = next(o for o in options if isinstance(o, type) and issubclass(o, BaseModel))
    return list(section.model_fields)


def _explain(error: Any, where: str, places: dict[tuple[str, ...], str]) -> str:
    """One sentence for one pydantic error: place, key, what was found, what is allowed."""
    path = tuple(str(part) for part in error["loc"])
    key_path = next((path[:n] for n in range(len(path), 0, -1) if path[:n] in places), path)
    place = places.get(key_path, where)
    if error["type"] == "extra_forbidden":
        known = _known_keys(Config, path[:-1])
        near = difflib.get_close_matches(path[-1], known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known keys: {', '.join(known)}"
        return f"{place}: unknown key '{'.'.join(path)}'; {hint}"
    message = error["msg"].removeprefix("Value error, ")
    message = message[:1].lower() + message[1:]
    if not path or error["type"] == "value_error":
        return f"{place}: {message}"
    if error["type"] == "missing":
        return f"{place}: '{'.'.join(path)}' is missing"
    return f"{place}: '{'.'.join(key_path)}': {message}, got {error['input']!r}"


def _apply_setting(settings: dict[str, Any], assignment: str) -> None:
    """Apply one `section.key=value` of the command line to the plain settings."""
    path, separator, value = assignment.partition("=")
    if not separator or not path:
        raise ConfigError(f"--set {assignment}: write it as section.key=value")
    *parents, key = path.split(".")
    for parent in parents:
        child = settings.setdefault(parent, {})
        if not isinstance(child, dict):
            child = settings[parent] = {}
        settings = child
    settings[key], _ = strict_yaml.parse(value, f"--set {path}")
    if settings[key] == {} and not value.strip():
        settings[key] = None


def parse_config(text: str, where: str = "configuration", settings: Iterable[str] = ()) -> Config:
    """Build a `Config` from YAML text and `section.key=value` settings that override it.

    Raises:
        ConfigError: naming file, line and key of the first mistakes, with the nearest known name.
    """
    values, lines = strict_yaml.parse(text, where)
    if not isinstance(values, dict):
        raise ConfigError(
            f"{where}: expected sections such as 'model:', got {type(values).__name__}"
        )
    places = {path: f"{where}:{line}" for path, line in lines.items()}
    for assignment in settings:
        _apply_setting(values, assignment)
        key = assignment.partition("=")[0]
        places[tuple(key.split("."))] = f"--set {key}"
    try:
        return Config.model_validate(values)
    except ValidationError as error:
        messages = [_explain(e, where, places) for e in error.errors()]
        raise ConfigError("\n".join(dict.fromkeys(messages))) from error


def find_config(name: str) -> Path:
    """The file `name` if there is one, else the bundled recipe of that name.

    Raises:
        ConfigError: naming the bundled recipes where neither exists.
    """
    path = Path(name)
    if path.is_file():
        return path
    bundled = Path(str(importlib.resources.files("nmt"))) / "configs"
    folder = bundled if bundled.is_dir() else bundled.parent.parent / "configs"
    stem = name.removesuffix(".yaml")
    if (folder / f"{stem}.yaml").is_file() and "/" not in stem:
        return folder / f"{stem}.yaml"
    known = ", ".join(sorted(p.stem for p in folder.glob("*.yaml")))
    raise ConfigError(f"{name}: no such file and no bundled recipe of that name ({known})")


def load_config(name: str, settings: Iterable[str] = ()) -> Config:
    """Read the configuration file or bundled recipe `name`, overridden by `settings`."""
    path = find_config(name)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(data) > MAX_CONFIG_BYTES:
        raise ConfigError(f"{path}: {len(data)} bytes is no configuration; the limit is 1 MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: not valid UTF-8; save the file as UTF-8") from error
    return parse_config(text, str(path), settings)


def dump_config(config: Config) -> str:
    """The whole configuration as YAML, every default written out; `parse_config` reads it back."""
    return strict_yaml.dump(config.model_dump())
