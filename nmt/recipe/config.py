"""All settings of a recipe with their defaults; `config_file.py` reads and writes them.

A default lives in its field below and nowhere else.
"""

import math
import re
from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator


class Section(BaseModel):
    """A group of settings, read-only; unknown keys and values of another type are errors."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    @field_validator("*")
    @classmethod
    def _check_no_nul(cls, value: object) -> object:
        """Check that no text has a NUL, which YAML can write but no path can hold."""
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and "\0" in text:
                raise ValueError(f"{text!r} holds a NUL character; remove it")
        return value


Activation = Literal["relu", "gelu", "swish"]
Norm = Literal["post", "pre"]
NormKind = Literal["layer", "rms"]
Embeddings = Literal["shared", "target", "separate"]
Positions = Literal["interleaved", "sines_first", "tensor2tensor", "fairseq", "rotary"]
StartEmbedding = Literal["learned", "zero", "eos"]
Network = Literal["plain", "gated"]
TrackerName = Literal["tensorboard", "wandb", "mlflow", "trackio"]
FilePath = Annotated[str, Field(min_length=1)]
Script = Annotated[str, Field(pattern=r"^[A-Za-z_]+$")]
Tag = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")]
MIN_VOCABULARY_SIZE = 8
MAX_BATCH_TOKENS = 10**12
"""limit of the tokens of a batch: more than any text has, and few enough for 64-bit integers"""


SEVERAL_LANGUAGES = "mul"
"""the code of ISO 639-2 for text in several languages"""


def spell_tag(word: str) -> str:
    """Return the tag of a word of a recipe: de becomes `>>de<<`."""
    return f">>{word}<<"


class MixedText(Section):
    """What a recipe may say about any text that a model learns from."""

    tags: list[Tag] = []
    """words that say something about this text; each source begins with them, as `>>word<<`"""
    after_step: int = Field(0, ge=0)
    """the text is learnt after this optimiser step; 0: from the start"""
    until_step: int | None = Field(None, ge=1)
    """the text is learnt until this optimiser step, which is the last one; null: to the end"""

    @model_validator(mode="after")
    def _steps_are_in_order(self) -> Self:
        if self.until_step is not None and self.until_step <= self.after_step:
            raise ValueError(
                f"a text is learnt after after_step and until until_step, got after_step: "
                f"{self.after_step}, until_step: {self.until_step}; raise until_step"
            )
        return self


_TABLE = re.compile(r"\.(tsv|tab|txt|csv)(\.(gz|xz|zst))?$")


class TextPair(MixedText):
    """The paths of a parallel text: two line-aligned files, or one file with both sides."""

    source: FilePath | None = None
    """path of the source side, relative to the current directory: plain text, .gz, .xz or .zst"""
    target: FilePath | None = None
    """path of the target side, with the same number of lines"""
    file: FilePath | None = None
    """path of one file with both sides, instead of source and target: .tsv, .csv, .jsonl, .tmx,
    .xlf or .po (also .gz, .xz, .zst), or .parquet"""
    source_field: str | Annotated[int, Field(ge=1)] | None = None
    """the column of a .tsv or .csv file (from 1), or the key of a record, that holds the source
    text; a dotted key leads into nested records; null: column 1, or the key named like the language
    code, at the top or inside `translation`"""
    target_field: str | Annotated[int, Field(ge=1)] | None = None
    """the same for the target text; null: column 2, or the key named like the language code"""
    document_field: str | Annotated[int, Field(ge=1)] | None = None
    """the column or key of `file` that names the document of a pair, for data.context: a document
    ends where it changes; null: blank lines alone divide documents"""
    name: Tag | None = None
    """a name for a text of several in data.validation or data.test, which has a score of its own;
    null: its path"""
    languages: Annotated[list[str], Field(min_length=2, max_length=2)] | None = None
    """codes of source and target language of this text, if one model learns several, such as [de,
    fr]; null: data.source_language and data.target_language"""
    weight: float = Field(1.0, gt=0, le=1000)
    """how often each pair of a training text is used in an epoch; 0.25: in every fourth epoch"""

    @model_validator(mode="after")
    def _either_two_files_or_one(self) -> Self:
        files = self.model_dump(include={"source", "target", "file"}, exclude_none=True)
        if files.keys() not in ({"source", "target"}, {"file"}):
            named = ", ".join(f"{key}: {path}" for key, path in files.items()) or "neither"
            raise ValueError(
                "name two files (source, target) or one that holds both sides (file), got " + named
            )
        if self.file is None and (self.source_field or self.target_field or self.document_field):
            raise ValueError(
                "source_field, target_field and document_field are for a file that holds both sides"
            )
        return self

    @property
    def paths(self) -> list[str]:
        """The given paths: source and target, or the one file."""
        return [path for path in (self.source, self.target, self.file) if path is not None]

    @property
    def has_columns(self) -> bool:
        """Whether the records of `file` are lines with columns, as in a .tsv or .tsv.gz."""
        return self.file is not None and _TABLE.search(self.file) is not None

    def languages_or(self, default: tuple[str, str]) -> tuple[str, str]:
        """Return the codes of source and target language; `default` if the text has none."""
        return (self.languages[0], self.languages[1]) if self.languages else default

    @property
    def label(self) -> str:
        """The name in figures: `name`, or else the path of the source."""
        return self.name or self.paths[0]


class SyntheticText(MixedText):
    """A folder that `nmt synthesize` wrote: training text of which a model made one side.

    Its tags, as in a text of data.train: [bt] tells the model what was translated back (Caswell et
    al., 2019).
    """

    folder: FilePath
    """the folder, relative to the current directory"""
    ratio: float | None = Field(None, gt=0, le=1000)
    """how many of its pairs an epoch has for each pair of data.train; null: each of them once"""


def _as_list(value: object) -> object:
    """Return a list of texts; a recipe may also give a single text, or null for none."""
    if value is None:
        return []
    if isinstance(value, str):
        raise ValueError(
            "the files of a text are named as {source: FILE, target: FILE}, or as {file: FILE} if "
            f"one has both sides, got {value!r}"
        )
    return [value] if isinstance(value, dict | TextPair) else value


TextPairs = Annotated[list[TextPair], BeforeValidator(_as_list)]


class CleaningConfig(Section):
    """Rules that drop training pairs; `nmt data inspect` shows how many each rule drops."""

    max_length: int = Field(256, ge=1)
    """drop a pair if a side has more subword tokens"""
    max_length_ratio: float | None = Field(None, gt=1)
    """drop a pair if one side has more than this times the tokens of the other; null: never"""
    identical: bool = False
    """drop a pair whose target equals its source"""
    duplicates: bool = False
    """drop a pair that occurred before"""
    control_characters: bool = False
    """drop a pair with a control character (Unicode category Cc, except tab) or U+FFFD"""
    source_script: Script | None = None
    """drop a pair if fewer than half of the letters of the source are in this script, such as Latin
    or Cyrillic"""
    target_script: Script | None = None
    """the same for the target"""
    copied: bool = False
    """drop a pair if six of ten words of the longer side are on the other side, too"""
    numbers: bool = False
    """drop a pair whose digits disagree"""
    links: bool = False
    """drop a pair with an address of the web or of mail that only one side has"""
    language: bool = False
    """drop a pair if a side is clearly in another language than it should be (py3langid; needs the
    extra `clean`)"""
    mojibake: bool = False
    """drop a pair that was once decoded with a wrong encoding, as "schÃ¶n" (ftfy; needs the extra
    `clean`)"""
    near_duplicates: bool = False
    """drop a pair that shares about nine tenths of its text with one before (MinHash)"""
    held_out_words: int | None = Field(None, ge=3)
    """drop a pair that shares this many words in a row with a sentence of the validation or test
    set, or equals a shorter one; null: synthetic text alone is compared, by whole sentences"""
    invalid_utf8: bool = False
    """drop a pair with bytes that are not UTF-8; if false, they are an error with file and line"""


class AugmentationConfig(Section):
    """Shares of the training pairs that are changed, so that a model learns such text as well.

    A pair has one change at most.
    """

    upper: float = Field(0.0, ge=0, le=1)
    """both sides in capitals"""
    title: float = Field(0.0, ge=0, le=1)
    """each word of both sides with a capital, the rest of it in small letters"""
    lower: float = Field(0.0, ge=0, le=1)
    """both sides in small letters"""
    typos: float = Field(0.0, ge=0, le=1)
    """typing errors in the source: in a tenth of its words, and in one at least"""
    no_final_punctuation: float = Field(0.0, ge=0, le=1)
    """both sides without the full stop, or similar, at their ends"""

    @property
    def total(self) -> float:
        """The share of the pairs that are drawn for any change."""
        return math.fsum(self.model_dump().values())

    @model_validator(mode="after")
    def _one_change_at_most(self) -> Self:
        if self.total > 1:
            raise ValueError(
                f"the rates of data.augmentation add up to {self.total:g}, and a pair has one "
                "change at most; lower them to 1 together"
            )
        return self


class ContextConfig(Section):
    """Pairs joined with those before them in their document (Tiedemann and Scherrer, 2017).

    A text is a document, or several with blank lines between them. Where cleaning leaves out a
    pair, no later pair is joined with those before it.
    """

    sentences: int = Field(2, ge=1, le=100)
    """how many pairs before a pair are its context; fewer at the beginning of a document, or where
    a side would have more tokens than data.cleaning.max_length"""
    sides: Literal["source", "source+target"] = "source+target"
    """source: sources are joined; source+target: targets as well, so that a translation begins with
    that of the context, which is taken off"""
    share: float = Field(0.5, gt=0, le=1)
    """share of the pairs that are learnt with their context; the others are learnt alone, because
    single sentences are to be translated, too"""


class TermsConfig(Section):
    """Terms inside sources, so that a model learns to inflect what a glossary asks for.

    After words of a source stands what their translation is called in a dictionary (Dinu et al.,
    2019; Bergmanis and Pinnis, 2021).
    """

    share: float = Field(0.3, gt=0, le=1)
    """share of the training pairs that have terms; the others stay plain, and validation does, so
    that the model translates as well without a glossary"""
    source: FilePath = "lexicon"
    """where the terms come from: lexicon: the pairs themselves, by a statistical aligner; or the
    path of a glossary, lines of source term, TAB, target term"""


class MemoryConfig(Section):
    """Sources with translations of similar sentences, which the model learns to use (fuzzy repair).

    Bulté and Tezcan, 2019; Xu, Crego and Senellart, 2020. At translation a memory gives them.
    """

    share: float = Field(0.5, gt=0, le=1)
    """share of the training pairs that are learnt with the targets of their nearest pairs, drawn by
    the seed and the pair; the others stay plain, so that the model translates as well without"""
    minimum: float = Field(0.5, ge=0.1, lt=1)
    """the lowest similarity of two sources: 1 less the words to change for each word of the longer
    one"""
    count: int = Field(2, ge=1, le=10)
    """the most nearest pairs of a source; those are left out with which it would have more tokens
    than twice data.cleaning.max_length"""
    marks: bool = False
    """whether marks stand around the words of a match that translate what the sentence lacks; a
    statistical aligner of the training text finds them, also at translation"""


class DataConfig(Section):
    """The text for training, validation and test."""

    source_language: str = "en"
    """language code of the text to translate"""
    target_language: str = "de"
    """language code of the translations"""
    language_tags: list[Tag] = []
    """codes of the languages of a model that begins each source and each target with the tag of its
    language, as M2M-100 and NLLB do; a fine-tuned run has those of its parent besides"""
    corpus: str | None = None
    """the name of a corpus (see `nmt data list`), for the splits that are not given below"""
    train: TextPairs = []
    """your own training text: one text, or a list of several with weights"""
    temperature: float = Field(1.0, ge=1, le=100)
    """T in n^(1/T): a training text of n pairs is used as if it had so many, scaled so that all
    together stay as many; above 1 small texts, such as those of rare languages, occur more often
    (Arivazhagan et al., 2019, use 5)"""
    synthetic: list[SyntheticText] = []
    """more training text, of which a model made one side"""
    validation: TextPairs = []
    """your own validation text: scored during training, never trained on. One text, or a list of
    several: all lines together choose the best weights, and each text has a score of its own"""
    test: TextPairs = []
    """your own test text, or several: scored when training ends, and by `nmt eval-bleu`"""
    directory: str = "data"
    """the folder for downloaded corpora and prepared data"""
    tokenized: bool = False
    """whether the text is already tokenised; if so, BLEU does not tokenise it again"""
    cleaning: CleaningConfig = CleaningConfig()
    augmentation: AugmentationConfig = AugmentationConfig()
    context: ContextConfig | None = None
    """learn to translate a sentence with those before it in its document; null: each alone"""
    terms: TermsConfig | None = None
    """add terms to sources, which the model learns to inflect; null: it learns none, and a glossary
    is obeyed word for word"""
    memory: MemoryConfig | None = None
    """learn to use the translations of similar sentences, which `nmt translate --memory` finds;
    null: of a memory, the model uses exact matches alone"""

    @property
    def languages(self) -> tuple[str, str]:
        """The language codes: (source, target)."""
        return self.source_language, self.target_language

    def languages_of(self, texts: Iterable[TextPair]) -> tuple[str, str]:
        """Return the codes of source and target language of texts; a side of several has `mul`.

        Without texts, they are the languages of the recipe.
        """
        pairs = {text.languages_or(self.languages) for text in texts} or {self.languages}
        source, target = (set(side) for side in zip(*pairs, strict=True))
        return (
            source.pop() if len(source) == 1 else SEVERAL_LANGUAGES,
            target.pop() if len(target) == 1 else SEVERAL_LANGUAGES,
        )

    @model_validator(mode="after")
    def _texts_have_keys_of_their_kind(self) -> Self:
        """Check that only training texts have weights and steps, and only held-out texts names."""
        for text in self.train:
            if text.name is not None:
                raise ValueError(
                    "data.train: a name is for a text of data.validation or data.test, got "
                    f"{text.name}; leave it out"
                )
        for key, texts in (("validation", self.validation), ("test", self.test)):
            # nmt eval-bleu --test-set takes the names of the sets and those of their texts
            labels = ["validation", "test", *(text.label for text in texts)]
            if taken := [label for label in labels if labels.count(label) > 1]:
                raise ValueError(f"data.{key}: the name {taken[0]} is taken; give the text another")
            if any(text.weight != 1 for text in texts):
                raise ValueError(f"data.{key}: a weight says how often to learn; leave it out")
            if any(text.after_step or text.until_step for text in texts):
                raise ValueError(
                    f"data.{key}: after_step and until_step say when to learn; leave them out"
                )
        return self

    def first_step_without_text(self) -> float:
        """Return the first optimiser step, from 1, in which no text is learnt; infinity: none.

        It is infinity without data.train too: a corpus or another run may then give the text.
        """
        if not self.train:
            return math.inf
        texts: list[MixedText] = [*self.train, *self.synthetic]
        last_step: float = 0  # up to here, each step has text
        for text in sorted(texts, key=lambda text: text.after_step):
            if text.after_step > last_step:  # a gap
                break
            end = math.inf if text.until_step is None else text.until_step
            last_step = max(last_step, end)
        return last_step + 1


class TokenizerConfig(Section):
    """How text is split into subword tokens and encoded as ids (SentencePiece)."""

    model: str | None = None
    """path of a SentencePiece model to use instead of learning one; vocabulary_size,
    character_coverage, byte_fallback and normalization are then ignored: the model has its own"""
    target_model: str | None = None
    """path of the SentencePiece model of the target side, if `shared` is false"""
    kind: Literal["bpe", "unigram", "char", "word"] = "bpe"
    """the unit of the vocabulary"""
    vocabulary_size: int = Field(8000, ge=MIN_VOCABULARY_SIZE, le=10_000_000)
    """number of entries of each vocabulary, including the four special symbols"""
    shared: bool = True
    """whether both languages share one vocabulary"""
    character_coverage: float = Field(1.0, ge=0.98, le=1)
    """fraction of the training text's characters that have entries; the others are unknown"""
    byte_fallback: bool = False
    """spell unknown characters as bytes instead of using the unknown symbol"""
    normalization: Literal["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"] = "nmt_nfkc"
    """SentencePiece normalisation rule, applied before the text is split into pieces"""
    sampling: float = Field(0.0, ge=0, lt=1)
    """draw a random segmentation of the training text each time it is used. bpe: the probability
    that a merge is left out in each step (BPE-dropout); unigram: the exponent of a segmentation's
    probability, lower is more random; 0: always the best segmentation"""

    @property
    def models(self) -> list[str]:
        """The given paths: none, one for both languages, or source and target."""
        return [path for path in (self.model, self.target_model) if path is not None]

    @model_validator(mode="after")
    def _models_fit(self) -> Self:
        expected = "model alone" if self.shared else "both model and target_model"
        count = 1 if self.shared else 2
        is_target_alone = self.target_model and not self.model
        if len(self.models) not in (0, count) or is_target_alone:
            raise ValueError(
                f"with tokenizer.shared: {str(self.shared).lower()} name {expected}, or neither, "
                f"got model: {self.model}, target_model: {self.target_model}"
            )
        return self

    @model_validator(mode="after")
    def _sampling_needs_a_choice(self) -> Self:
        if self.sampling and self.kind not in ("bpe", "unigram"):
            raise ValueError(
                f"tokenizer.sampling: {self.sampling} needs kind bpe or unigram, "
                f"got kind {self.kind}, which cuts in one way only; set it to 0"
            )
        return self


class ModelConfig(Section):
    """The architecture of the Transformer; the defaults are `base` in table 3 of the paper."""

    # The upper bounds are beyond any memory; products of these sizes fit in 64-bit integers.
    d_model: int = Field(512, ge=2, le=1_000_000)
    """width of the embeddings and of the output of every sub-layer"""
    heads: int = Field(8, ge=1)
    """number of parallel attention heads; each has width d_model / heads"""
    d_ff: int = Field(2048, ge=1, le=1_000_000)
    """inner width of the position-wise feed-forward network"""
    encoder_layers: int = Field(6, ge=1, le=1000)
    """number of layers of self-attention and feed-forward network"""
    decoder_layers: int = Field(6, ge=1, le=1000)
    """number of layers of self-attention, cross-attention and feed-forward network"""
    decoder: Literal["attention", "ssru"] = "attention"
    """how a position reads the target before it: self-attention (the paper), or the recurrence of
    Kim et al. (2019), whose step costs the same however long the sentence; Firefox's models"""
    activation: Activation = "relu"
    """the function inside the feed-forward network: relu (the paper), gelu (exact, with erf) or
    swish (x sigmoid(x)); models of Marian and OPUS-MT have swish, many of Hugging Face gelu"""
    feed_forward: Network = "plain"
    """plain: Eq. 2; gated: with a third matrix, so that two thirds of d_ff have as many weights
    (Shazeer, 2020); with the activation swish this is SwiGLU, with gelu GEGLU"""
    norm: Norm = "post"
    """the norm after the residual sum (the paper) or before each sub-layer"""
    norm_kind: NormKind = "layer"
    """layer: layer normalisation (the paper); rms: by the root mean square alone, without mean and
    bias (RMSNorm; Zhang and Sennrich, 2019)"""
    dropout: float = Field(0.1, ge=0, lt=1)
    """probability, on each sub-layer's output and on embeddings plus positions (section 5.4)"""
    attention_dropout: float = Field(0.0, ge=0, lt=1)
    """dropout probability on the attention weights; the paper has none"""
    activation_dropout: float = Field(0.0, ge=0, lt=1)
    """dropout probability after the feed-forward network's activation; the paper has none"""
    embeddings: Embeddings = "shared"
    """shared: source, target and output use one matrix (section 3.4); target: target and output use
    one; separate: each has its own"""
    output_bias: bool = False
    """add a learned number to each logit; the paper has none, models of Marian have it"""
    positions: Positions = "interleaved"
    """the positional encoding: sine and cosine in turn (interleaved, section 3.5); all sines before
    all cosines, as MarianMTModel of transformers has them (sines_first); the same with slightly
    other wavelengths, as Marian itself has them (tensor2tensor); these from their third position
    on, as M2M-100 and NLLB have them (fairseq); or none, but self-attention with queries and keys
    that are rotated by their position (rotary: RoPE; Su et al., 2021)"""
    start_embedding: StartEmbedding = "learned"
    """what the decoder reads before the first token: the embedding of the begin symbol (learned),
    zeros, as in models of Marian (zero), or the embedding of EOS, as in M2M-100 and NLLB (eos)"""
    source_eos: bool = True
    """whether the encoder reads the end symbol of a source (the paper); models that OpenNMT-py has
    trained, as most packages of Argos, do not. If false, only PyTorch trains and translates"""
    layer_norm_epsilon: float = Field(1e-6, gt=0)
    """added to the variance, or mean square, under the square root of each norm"""
    initialization_gain: float = Field(1.0, gt=0, le=1000)
    """factor on the Glorot-uniform initial weights; below 1 a layer starts closer to the identity,
    so that a small post-norm model learns with a short warm-up"""

    @model_validator(mode="after")
    def _heads_divide_width(self) -> Self:
        if self.d_model % self.heads or self.d_model % 2:
            raise ValueError(
                f"d_model must be even and a multiple of heads, got d_model: {self.d_model}, "
                f"heads: {self.heads}"
            )
        if self.positions == "rotary" and self.d_model // self.heads % 2:
            raise ValueError(
                "positions: rotary needs heads of an even width d_model / heads, got "
                f"{self.d_model // self.heads}; choose another number of heads"
            )
        return self


class LoraConfig(Section):
    """Fine-tuning of a small adapter beside frozen weights (LoRA; Hu et al., 2021)."""

    rank: int = Field(8, ge=1, le=1_000_000)
    """r, the rank of the update of each weight matrix, for which the adapter has r (in + out)
    weights"""
    alpha: float = Field(16.0, gt=0)
    """the update is multiplied by alpha / rank"""
    targets: list[
        Literal["query", "key", "value", "output", "inner", "gate", "outer", "candidate", "forget"]
    ] = Field(["query", "value"], min_length=1)
    """the linear maps that are adapted: those of attention, inner and outer of the feed-forward
    networks, candidate and forget of `decoder: ssru`; query and value are the choice of the paper
    (its sections 4.2 and 7.1)"""


def alignment_layer(decoder_layers: int) -> int:
    """Return the index of the layer whose attention aligns words best: the last but one.

    The first layer is used only if there is no other: its queries do not know the source yet.
    """
    return max(min(1, decoder_layers - 1), decoder_layers - 2)


class GuidedAlignmentConfig(Section):
    """One attention head that learns which words translate each other (Garg et al., 2019).

    The head is the first one of the cross-attention of one decoder layer. Alignments of
    translations are read from it, and so tags, glossaries and placeholders are put by it.
    """

    links: FilePath = "auto"
    """what the head learns: auto: the links of a statistical aligner, which prepares them with the
    data; or the path of a file with a line for each training pair, such as `0-0 1-2`: numbers of
    words, which white space separates, of source and target, from 0 (also .gz, .xz or .zst)"""
    weight: float = Field(0.05, gt=0, le=1000)
    """factor of the cross-entropy of the head, which is added to the loss"""
    layer: int | None = Field(None, ge=1)
    """the decoder layer, from 1; null: the last but one, or the second of two"""
    position: Literal["reads", "predicts"] = "reads"
    """which position's weights align a token: that which reads it and so knows it; or that which
    predicts it, as in Marian and its students for browsers"""

    @property
    def steps_later(self) -> int:
        """How many steps after the one that predicts a token its weights are computed."""
        return 1 if self.position == "reads" else 0

    def layer_index(self, decoder_layers: int) -> int:
        """Return the index, from 0, of the layer in a decoder of so many layers."""
        return self.layer - 1 if self.layer else alignment_layer(decoder_layers)


class TrainingConfig(Section):
    """Optimiser, learning rate, validation and checkpoints of a training."""

    batch_tokens: int = Field(25_000, ge=1, le=MAX_BATCH_TOKENS)
    """the most source tokens, and the most target tokens, of one optimiser step over all devices,
    counted before tokenizer.sampling splits them further"""
    micro_batch_tokens: Annotated[int, Field(ge=1)] | Literal["auto"] = "auto"
    """tokens computed at once, padding included: sentences times the longest length; auto: as many
    as make the device faster, halved until they fit in its memory"""
    initialize_from: str | None = None
    """a run, or a checkpoint of one, whose weights are the initial weights as far as they fit; to
    keep its vocabulary, set tokenizer.model to the tokenizer.model in the run"""
    lora: LoraConfig | None = None
    """train an adapter of the weights in initialize_from instead of all weights; the run then holds
    the adapter alone, and needs its parent"""
    activation_checkpointing: bool = False
    """store only the input of each layer and compute the rest again for the gradient: a third more
    arithmetic for a fraction of the memory"""
    compile: bool = True
    """on a GPU, let PyTorch compile the layers and the loss, which takes a minute at the start"""
    max_steps: int = Field(100_000, ge=1)
    """number of optimiser steps of the whole training"""
    schedule: Literal[
        "inverse_square_root", "constant", "linear", "cosine", "one_cycle", "warmup_stable_decay"
    ] = "inverse_square_root"
    """the course of the learning rate after the warm-up; Eq. 3 is inverse_square_root"""
    warmup_steps: int = Field(4000, ge=1)
    """number of first steps in which the learning rate rises linearly (Eq. 3)"""
    peak_learning_rate: float | None = Field(None, gt=0)
    """learning rate after the warm-up; null: the paper's d_model^-0.5 * warmup_steps^-0.5"""
    cooldown_steps: int = Field(0, ge=0)
    """the number of last steps in which the rate of any schedule falls linearly to zero; 0: none,
    but for warmup_stable_decay a fifth of max_steps, or all steps after the warm-up if these are
    fewer"""
    optimizer: Literal["adam", "muon"] = "adam"
    """adam (section 5.3); muon: orthogonal momentum for the linear maps inside the layers and Adam
    for the rest, which needs fewer steps on a small corpus"""
    adam_beta1: float = Field(0.9, ge=0, lt=1)
    """decay of the running mean of the gradients"""
    adam_beta2: float = Field(0.98, ge=0, lt=1)
    """decay of the running mean of the squared gradients"""
    adam_epsilon: float = Field(1e-9, gt=0)
    """added to the square root of the running mean of the squared gradients"""
    weight_decay: float = Field(0.0, ge=0)
    """decoupled weight decay (AdamW); the paper has none"""
    clip_norm: float | None = Field(None, gt=0)
    """a gradient with a larger norm is scaled down to this norm; null: never (the paper)"""
    label_smoothing: float = Field(0.1, ge=0, lt=1)
    """probability that is spread over the wrong symbols (section 5.4)"""
    guided_alignment: GuidedAlignmentConfig | None = None
    """let one attention head learn word alignments, by which tags and protected words are placed;
    null: alignments are read from the attention of a layer, which has learnt to translate alone"""
    log_every: int = Field(50, ge=1)
    """steps between lines of metrics.jsonl"""
    track: list[TrackerName] = Field(default_factory=list)
    """programs that get the figures of metrics.jsonl too: tensorboard, wandb, mlflow, trackio; each
    needs the extra of its name"""
    validate_every: int = Field(1000, ge=1)
    """steps between validations"""
    validation_metric: Literal["bleu", "chrf", "loss"] = "bleu"
    """the score that selects the best weights and decides on early stopping; for bleu and chrf the
    validation set is translated greedily; the loss is always computed too, and decides between
    equal scores"""
    checkpoint_every: int = Field(1500, ge=1)
    """steps between checkpoints; 1500 steps of `base` took the authors ten minutes"""
    moving_average: float | None = Field(None, gt=0, lt=1)
    """decay of an exponential moving average of the weights, such as 0.999; the average is compared
    with `averaged/` and the best checkpoint at the end; null: none"""
    largest_spike: float | None = Field(None, gt=0)
    """a loss this many nats per token above its running mean counts as divergence; null: only NaN
    or infinity does"""
    on_divergence: Literal["stop", "roll_back"] = "stop"
    """stop: end the training; roll_back: return to the last checkpoint and skip the steps since"""
    average_checkpoints: int = Field(5, ge=1)
    """number of checkpoints that `averaged/` is the mean of (section 6.1)"""
    average: Literal["last", "best"] = "last"
    """last: the last checkpoints at multiples of checkpoint_every (the paper); best: those with the
    best validation scores"""
    keep_last: int = Field(2, ge=1)
    """number of last checkpoints to keep, beside those that will be averaged"""
    keep_best: int = Field(1, ge=1)
    """number of checkpoints with the best validation scores to keep"""
    early_stopping: int | None = Field(None, ge=1)
    """stop after this many validations in a row without a better score; null: never"""
    score_test_set: bool = True
    """translate the test set once at the end with the best weights, and write its scores into
    result.json of the run"""
    device: str = Field("auto", pattern=r"^[a-z]+(:[0-9]{1,3})?$")
    """auto: a CUDA GPU if PyTorch finds one, else cpu; or the name of any device of PyTorch: cpu,
    cuda, cuda:1, mps, xpu"""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """auto: bf16 if the device is faster in it than in fp32, else fp32"""
    threads: Annotated[int, Field(ge=1, le=1024)] | Literal["auto"] = "auto"
    """CPU threads, which share the computation of a step; auto: one for each core that this process
    may use"""

    @model_validator(mode="before")
    @classmethod
    def _read_old_key(cls, values: object) -> object:
        """Read `tensorboard`, the key of runs that were trained before there was `track`."""
        if isinstance(values, dict) and isinstance(values.get("tensorboard"), bool):
            values = dict(values)
            if values.pop("tensorboard"):
                values["track"] = [*values.get("track", []), "tensorboard"]
        return values

    @model_validator(mode="after")
    def _lora_has_a_parent(self) -> Self:
        if self.lora and not self.initialize_from:
            raise ValueError(
                "training.lora adapts a trained model; name its run in training.initialize_from"
            )
        if self.lora and self.optimizer == "muon":
            raise ValueError("training.lora is trained with optimizer: adam, got muon")
        return self

    @model_validator(mode="after")
    def _cooldown_fits(self) -> Self:
        if self.cooldown_steps and self.warmup_steps + self.cooldown_steps > self.max_steps:
            raise ValueError(
                f"warmup_steps ({self.warmup_steps}) and cooldown_steps ({self.cooldown_steps}) "
                f"are more than max_steps ({self.max_steps}); lower them, or raise max_steps"
            )
        return self


class DecodingConfig(Section):
    """The search for the best translation, and its rules (section 6.1)."""

    # The upper bounds keep lengths within 32 bits and scores finite, which the C library needs.
    beam_size: int = Field(4, ge=1)
    """number of hypotheses kept for each sentence; 1 is greedy search"""
    length_penalty: float = Field(0.6, ge=0, le=10)
    """alpha in ((5 + length) / 6)^alpha; 0: none"""
    length_normalization: Literal["gnmt", "average", "none"] = "gnmt"
    """the divisor of log P. gnmt: the penalty above; average: the length, without alpha; none: no
    divisor"""
    min_length: int = Field(0, ge=0, le=1_000_000)
    """fewest tokens of a translation; a blank line has none"""
    no_repeat_ngram: int = Field(0, ge=0, le=1_000_000)
    """no sequence of this many tokens occurs twice in a translation; 0: no such rule"""
    coverage_penalty: float = Field(0.0, ge=0, le=1000)
    """beta (Wu et al., 2016): lowers the score of finished translations that leave out a part of
    the source; 0: none"""
    allow_unknown: bool = True
    """whether a translation may hold the unknown symbol; Marian does not allow it"""
    copy_unknown: bool = False
    """replace an unknown symbol by the source word that the decoder attended to, except in lines
    with terms of a glossary, forbidden words or a given beginning"""
    max_length_factor: float = Field(1.0, ge=1, le=1000)
    """a translation has at most this many times the tokens of its source, and max_length_offset
    more; Marian has 3 times and no offset"""
    max_length_offset: int = Field(50, ge=0, le=1_000_000)
    """see max_length_factor"""
    early_stopping: bool = False
    """end the search of a sentence when beam_size hypotheses have ended, although another might
    still be better: faster; a search with terms does not end early"""
    batch_tokens: int = Field(4096, ge=1, le=MAX_BATCH_TOKENS)
    """the most source tokens translated at once, padding included"""

    def max_target_length(self, source_length: int) -> int:
        """Return the most tokens, EOS included, of a translation of `source_length` tokens."""
        return int(source_length * self.max_length_factor) + self.max_length_offset


class Sampling(Section):
    """Settings of translations that are drawn at random instead of searched.

    Options of a command or function give them; it is no section of a recipe.
    """

    # A smaller divisor makes logits infinite, a larger one makes them all equal.
    temperature: float = Field(1.0, ge=1e-6, le=1e6)
    """divides the logits; lower is more deterministic"""
    top_k: int | None = Field(None, ge=1)
    """draw only from this many most probable tokens; None: from all"""
    top_p: float | None = Field(None, gt=0, le=1)
    """draw only from the most probable tokens whose probabilities add up to this; None: from all"""
    seed: int = Field(1, ge=0)
    """the draws of a sentence depend on the seed and the sentence's number, and on nothing else"""


class Config(Section):
    """One recipe: everything that decides how a model is trained and how it translates."""

    data: DataConfig = DataConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    decoding: DecodingConfig = DecodingConfig()
    seed: int = Field(1, ge=0, lt=1 << 63)
    """determines the initial weights, dropout, the order of the data and the segmentations of
    tokenizer.sampling"""

    @model_validator(mode="after")
    def _sections_agree(self) -> Self:
        # two given SentencePiece models may have the same pieces, which is checked later
        is_learnt = not self.tokenizer.model
        if self.model.embeddings == "shared" and not self.tokenizer.shared and is_learnt:
            raise ValueError(
                "model.embeddings: shared needs tokenizer.shared: true; "
                "with one vocabulary for each language write embeddings: target"
            )
        guided, layers = self.training.guided_alignment, self.model.decoder_layers
        if guided and guided.layer and guided.layer > layers:
            raise ValueError(
                f"training.guided_alignment.layer: {guided.layer}, but model.decoder_layers is "
                f"{layers}; lower it, or leave it out for the last layer but one"
            )
        if guided and self.tokenizer.sampling:
            raise ValueError(
                "training.guided_alignment has links for one segmentation of the text, and "
                f"tokenizer.sampling: {self.tokenizer.sampling} draws others; leave one of them out"
            )
        if self.data.terms and self.tokenizer.sampling:
            raise ValueError(
                "data.terms puts marks into sources for one segmentation of the text, and "
                f"tokenizer.sampling: {self.tokenizer.sampling} draws others; leave one of them out"
            )
        if self.data.terms and not self.tokenizer.shared:
            raise ValueError(
                "data.terms needs tokenizer.shared: true, because sources have words of the target "
                "language; share the vocabulary, or leave out data.terms"
            )
        if self.data.language_tags and self.data.context:
            raise ValueError(
                "data.context joins texts, and with data.language_tags each begins with a tag; "
                "leave out data.context"
            )
        if self.data.language_tags and not self.tokenizer.shared:
            raise ValueError(
                "data.language_tags needs tokenizer.shared: true, because sources and targets "
                "have the tags of the same languages"
            )
        if self.data.memory and not self.tokenizer.shared:
            raise ValueError(
                "data.memory puts text of the target language into sources, which needs "
                "tokenizer.shared: true; share the vocabulary, or leave out data.memory"
            )
        return self

    @model_validator(mode="after")
    def _each_step_has_text(self) -> Self:
        step, last = self.data.first_step_without_text(), self.training.max_steps
        if step <= last:
            raise ValueError(
                f"no text of data.train or data.synthetic is learnt in step {step:,} of {last:,} "
                "(training.max_steps); raise an until_step, or lower an after_step"
            )
        return self
