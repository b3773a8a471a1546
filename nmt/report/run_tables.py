"""The output of `nmt runs`: tables of runs for a terminal, Markdown, LaTeX and CSV."""

import csv
import io
import re
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from nmt.report.runs import DONE, Row, figure_columns
from nmt.report.tables import columns, with_deviation, wrap

MOST_SETTINGS = 5
"""columns of settings in a table for a terminal; where there are more, they stand below it"""
LONGEST_VALUE = 40  # characters of a setting
_WHOLE = ("steps", "parameters", "seconds")
"""columns of numbers without digits after the point"""
_NOT_LATIN = re.compile("[^\0-\u017f\u2010-\u2026]")
"""letters for which pdfLaTeX has no font"""
_LATEX = {sign: f"\\{sign}" for sign in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "…": r"\dots{}",
}


def escape_latex(text: str) -> str:
    """Return text that LaTeX prints as it is."""
    return "".join(_LATEX.get(sign, sign) for sign in text)


def render_text(rows: Sequence[Row], groups: Sequence[Row], settings: Sequence[str]) -> str:
    """Return tables of groups and of runs, what is not done, and the signatures of the scores."""
    names = _short_keys(settings)
    shown = settings if len(settings) <= MOST_SETTINGS else []
    parts = ["mean ± standard deviation of the runs with equal settings"] * bool(groups)
    parts += columns(_table(groups, ["group", *shown, "runs", *_WHOLE], names)) if groups else ()
    for group in [] if shown else groups[1:]:
        first = groups[0]["settings"].items()
        changes = [
            f"{names[k]} {_cell(group['settings'][k], k)} (not {_cell(v, k)})"
            for k, v in first
            if v != group["settings"][k]
        ]
        parts.append(wrap(f"{group['group']}: {', '.join(changes)}"))
    if done := [row for row in rows if row["state"] == DONE]:
        parts += ["", *columns(_table(done, ["run", "seed", *_WHOLE], names))]
    parts += [wrap(f"{row['run']} is {row['state']}") for row in rows if row["state"] != DONE]
    return "\n".join([*parts, "", *_signatures(rows)]).rstrip()


def render_markdown(rows: Sequence[Row], groups: Sequence[Row], settings: Sequence[str]) -> str:
    """Return the table of groups in Markdown, with the signatures below it."""
    head, *body = _table(groups, ["group", *settings, "runs"], _short_keys(settings))
    lines = [head, ["---"] * len(head), *body]
    escaped = ([re.sub(r"([\\`*<|])", r"\\\1", cell) for cell in line] for line in lines)
    return "\n".join([*(f"| {' | '.join(line)} |" for line in escaped), "", *_signatures(rows)])


def render_latex(rows: Sequence[Row], groups: Sequence[Row], settings: Sequence[str]) -> str:
    """Return a table of groups and their test scores for LaTeX with the package booktabs.

    The settings of the groups, and the signatures of the scores, are comments below it.
    """
    names = _short_keys(settings)
    table = _table(groups, ["group", "runs"], names, decimals=1)
    if any(column in rows[0]["signatures"] for column in table[0]):
        kept = [n for n, name in enumerate(table[0]) if not name.startswith("validation")]
        table = [[line[n] for n in kept] for line in table]
    head, *body = (" & ".join(map(escape_latex, line)) + r" \\" for line in table)
    is_latin = not any(_NOT_LATIN.search(line) for line in body)
    engine = "" if is_latin else "; XeLaTeX or LuaLaTeX, with a font of these letters"
    comments = [
        f"{group['group']}: {', '.join(f'{names[k]} {_cell(v, k)}' for k, v in changed.items())}"
        for group in groups
        if (changed := group["settings"])
    ]
    return "\n".join(
        [
            f"% \\usepackage{{booktabs}}{engine}; mean and standard deviation of the runs",
            f"\\begin{{tabular}}{{l{'r' * (len(table[0]) - 1)}}}",
            *("\\toprule", head, "\\midrule", *body, "\\bottomrule"),
            "\\end{tabular}",
            *(f"% {line}" for line in [*comments, *_signatures(rows)]),
        ]
    )


def render_csv(rows: Sequence[Row]) -> str:
    """Return all runs with all columns, also those that are not done, as CSV with a head."""
    flat = []
    for row in rows:
        figures = {
            key: row[key] for key in row if key not in ("run", "state", "settings", "signatures")
        }
        flat.append({"run": row["run"], "state": row["state"], **row["settings"], **figures})
    sink = io.StringIO()
    writer = csv.DictWriter(sink, dict.fromkeys(key for row in flat for key in row))
    writer.writeheader()
    writer.writerows(flat)
    return sink.getvalue().rstrip()


def _table(
    rows: Sequence[Row], first: Sequence[str], names: dict[str, str], decimals: int = 2
) -> list[list[str]]:
    """Return a table with its head: the columns `first`, then those of the scores.

    The loss of the validation is left out where there is a better figure.
    """
    scores = [column for column in figure_columns(rows) if column not in _WHOLE]
    if len(scores) > 1:
        scores = [column for column in scores if column != "validation loss"]
    shown = [*first, *scores]
    cells = (
        [_cell({**row["settings"], **row}.get(key), key, decimals) for key in shown] for row in rows
    )
    return [[names.get(key, "" if key in ("group", "run") else key) for key in shown], *cells]


def _cell(value: Any, column: str, decimals: int = 2) -> str:
    """Format a value: a list of figures (mean ± deviation), a figure, or a setting."""
    values = value if isinstance(value, list) else [value]
    if column in _WHOLE and values and None not in values:
        return f"{statistics.mean(values):,.0f}"
    if isinstance(value, list) and value and isinstance(value[0], float):
        return with_deviation(value, decimals)
    is_name = column in ("group", "run")
    if ("." in column or (isinstance(value, str) and not is_name)) and value is not None:
        # a setting
        text = f"{value:g}" if isinstance(value, float) else str(value)
        return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"
    return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)


def _short_keys(keys: Sequence[str]) -> dict[str, str]:
    """Return the last part of each section.key, or all of it where two have the same."""
    last = [key.rpartition(".")[2] for key in keys]
    return {key: key if last.count(end) > 1 else end for key, end in zip(keys, last, strict=True)}


def _signatures(rows: Iterable[Row]) -> list[str]:
    """Return "metric: signature" of the scores, each once."""
    pairs = [pair for row in rows for pair in row["signatures"].items()]
    return [f"{name}: {signature}" for name, signature in dict.fromkeys(pairs)]
