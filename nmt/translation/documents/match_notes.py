"""What XLIFF 1.2 says about the translation memory that a target came from: kind and score."""

from nmt.memory.match import Match
from nmt.translation.documents.xml_tokens import write_text

SUGGESTION = "mt-suggestion"
"""the `state-qualifier` of what a model has translated alone"""
ORIGIN = "translation memory"
"""the `origin` of the elements <alt-trans> that this program writes"""


def percentage(match: Match) -> int:
    """Return the score of a match in percent, 100 for equal sources alone."""
    return round(100 * match.score) if match.score == 1 else min(99, round(100 * match.score))


def alternative(match: Match | None) -> str:
    """Return the pair of a memory as the element <alt-trans> of a unit; "" if there is none."""
    if match is None:
        return ""
    source, target = write_text(match.source), write_text(match.target)
    return (
        f'<alt-trans match-quality="{percentage(match)}%" origin="{ORIGIN}">'
        f"<source>{source}</source><target>{target}</target></alt-trans>"
    )
