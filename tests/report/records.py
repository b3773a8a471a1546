"""Records of metrics.jsonl as the tests of curves and plots write them."""

import json
from pathlib import Path
from typing import Any


def write_metrics(path: Path, *records: dict[str, Any], tail: str = "") -> Path:
    """Write one record per line, then `tail`."""
    path.write_text("".join(json.dumps(record) + "\n" for record in records) + tail, "utf-8")
    return path


def training(step: int, loss: float, **figures: Any) -> dict[str, Any]:
    """A record of training."""
    return {"event": "train", "step": step, "loss": loss, **figures}


def validation(step: int, loss: float, bleu: float | None, **figures: Any) -> dict[str, Any]:
    """A record of a validation."""
    return {"event": "validation", "step": step, "loss": loss, "bleu": bleu, **figures}
