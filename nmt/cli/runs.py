"""`nmt runs`: all runs below a folder in one table."""

import json
from pathlib import Path
from typing import Annotated

import typer

from nmt.cli.options.groups import with_option_groups
from nmt.errors import ConfigError


@with_option_groups
def runs(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER")] = Path("runs"),
    sort: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="From low to high; -COLUMN: from high to low."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print a line for each run.")] = False,
    latex: Annotated[bool, typer.Option(help="Print the groups for LaTeX (booktabs).")] = False,
    markdown: Annotated[bool, typer.Option(help="Print the groups in Markdown.")] = False,
) -> None:
    """List all runs in a folder, and means over seeds.

    Shows the settings that differ, seeds, steps, time, parameters, and scores with signatures. Runs
    that are unfinished or damaged are named, and left out of the means.
    """
    if as_json + as_csv + latex + markdown > 1:
        raise ConfigError("give one of --json, --csv, --latex and --markdown")
    from nmt.report.run_tables import render_csv, render_latex, render_markdown, render_text
    from nmt.report.runs import group_runs, read_runs, sort_rows

    rows, settings = read_runs(folder)
    groups = group_runs(rows)
    if sort:
        rows, groups = sort_rows(rows, sort), sort_rows(groups, sort)
    if as_json:
        typer.echo(json.dumps({"runs": rows, "groups": groups}))
    elif as_csv:
        typer.echo(render_csv(rows))
    elif (latex or markdown) and not groups:
        raise ConfigError(f"{folder}: no run is done; see what is missing by `nmt runs` alone")
    else:
        render = render_latex if latex else render_markdown if markdown else render_text
        typer.echo(render(rows, groups, settings))
