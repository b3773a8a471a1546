"""Contrastive scoring: how often a model prefers the right translation to a wrong one.

    python scripts/examples/contrastive.py RUN pairs.tsv

A line has a source, the right translation and a wrong one, with tabs between, as test sets of the
kind of LingEval97 (Sennrich, 2017) can be written. A fourth column, such as the kind of mistake,
gives a row for each kind.
"""

import sys
from collections import defaultdict

import nmt


def main(path: str, table: str) -> None:
    """Print the share of right preferences by kind, and the pair with the lowest margin."""
    with open(table, encoding="utf-8") as lines:
        rows = [[*line.rstrip("\n").split("\t"), "all"][:4] for line in lines]
    sources, right, wrong, kinds = (list(column) for column in zip(*rows, strict=True))
    translator = nmt.load(path)
    # log P of each target, over its tokens: else the shorter one would be preferred
    scores = zip(
        translator.target_scores(sources, right),
        translator.target_scores(sources, wrong),
        strict=True,
    )
    margins = [
        good.log_probability / len(good.tokens) - bad.log_probability / len(bad.tokens)
        for good, bad in scores
    ]
    by_kind: dict[str, list[bool]] = defaultdict(list)
    for kind, margin in zip(kinds, margins, strict=True):
        by_kind[kind].append(margin > 0)
    for kind, preferred in sorted(by_kind.items()):
        print(f"{kind}: {sum(preferred) / len(preferred):.1%} of {len(preferred)}")
    worst = min(range(len(rows)), key=margins.__getitem__)
    print(f"lowest margin: {margins[worst]:+.3f} nats per token, {sources[worst]} | {wrong[worst]}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
