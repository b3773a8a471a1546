"""The model card of an export: a README.md with a header that the Hugging Face Hub reads.

It says only what the run records. See https://huggingface.co/docs/hub/model-cards.
"""

from pathlib import Path
from typing import Any

from nmt.exchange.imported import origin_of, read_provenance
from nmt.files import read_json_or_empty
from nmt.recipe import strict_yaml
from nmt.recipe.config import Config
from nmt.run.directory import RunDirectory, find_run
from nmt.run.model import LoadedModel


def model_card(
    loaded: LoadedModel, written: str, verification: str, usage: str, *, is_changed: bool = False
) -> str:
    """Return the text of README.md.

    Args:
        loaded: The model.
        written: The format, and how the weights are stored, such as "ctranslate2 (int8)".
        verification: What the verification has found, or that there was none, in words that
            complete the sentence "The export is …".
        usage: Lines of Python that use the folder.
        is_changed: Whether an adapter or a quantization has changed the weights of the run.
    """
    directory, config = find_run(loaded.path), loaded.config
    provenance = read_provenance(directory)
    parameters = sum(weight.numel() for weight in loaded.model.parameters())
    sections = [
        f"---\n{strict_yaml.dump(_header(config, provenance))}---\n",
        f"# Translation from {config.data.source_language} to {config.data.target_language}\n",
        f"A Transformer for machine translation, written as {written} by nmt. "
        f"The export is {verification}.\n",
        f"{_architecture(config)}, {parameters:,} parameters, vocabulary "
        f"{loaded.tokenizer.source.size:,} (source) and "
        f"{loaded.tokenizer.target.size:,} (target).\n",
        "## Use\n",
        f"```python\n{usage}```\n",
        "## Origin and training data\n",
        *_origin(config, origin_of(directory), provenance.get("sha256", {})),
        "## Scores\n",
        *_scores(loaded, directory, is_changed),
    ]
    return "\n".join(sections)


def _header(config: Config, provenance: dict[str, Any]) -> dict[str, Any]:
    """Return the YAML header; a licence that is not known is "other"."""
    licence = provenance.get("license", "unknown")
    header: dict[str, Any] = {
        "language": [config.data.source_language, config.data.target_language],
        "license": "other" if licence == "unknown" else licence,
        "tags": ["translation", "nmt"],
        "pipeline_tag": "translation",
    }
    if config.data.corpus:
        header["datasets"] = [config.data.corpus]
    if "revision" in provenance:  # a model of the Hub
        header["base_model"] = provenance["source"]
    return header


def _architecture(config: Config) -> str:
    """Return a phrase with the numbers of layers and heads, width, norm and activation."""
    model = config.model
    return (
        f"{model.encoder_layers} encoder and {model.decoder_layers} decoder layers of width "
        f"{model.d_model} with {model.heads} heads, {model.norm}-norm, {model.activation}"
    )


def _origin(config: Config, origin: str, digests: dict[str, str]) -> list[str]:
    """Return lines that say where weights and training text come from, and under which licence.

    `digests` are the SHA-256 of the files that were imported, by their names.
    """
    lines = [f"- Imported from {origin}."] if origin else []
    lines += [f"- {name}: sha256 {digest}" for name, digest in digests.items()]
    texts = [", ".join(Path(path).name for path in text.paths) for text in config.data.train]
    if config.data.corpus:
        texts.append(config.data.corpus)
    lines += [f"- Training text: {text}; licence: see its source." for text in texts]
    return [*(lines or ["- Training text: unknown."]), ""]


def _scores(loaded: LoadedModel, directory: RunDirectory, is_changed: bool) -> list[str]:
    """Return lines with the scores of the test set and their signatures, if these weights have any.

    The scores of `result.json` are of float32.
    """
    result = read_json_or_empty(directory.result)
    scored = str(result.get("weights"))
    has_weights = loaded.path.resolve() == (directory.path / scored).resolve()
    is_scored = has_weights and not is_changed and directory.has_scores_of_best()
    if result.get("scores") and not is_scored:
        return [
            f"- These weights have no scores. The run has scores for {scored} after "
            f"{result.get('trained_steps')} steps, in float32."
        ]
    lines = [
        f"- {score['name']}: {score['score']:.2f} ({score['signature']})"
        for score in result.get("scores", [])
    ]
    return lines or ["- This model was not scored."]
