"""Numbers and texts as people read them."""


def duration(seconds: float) -> str:
    """Format a duration: 40 s; 1.5 min; 1 h 30 min; 2 d 2 h."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if round(minutes, 1) < 10:
        return f"{minutes:.1f} min"
    if round(minutes) < 60:
        return f"{minutes:.0f} min"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def short_number(number: float) -> str:
    """Format a number with two decimals and a unit if it is large: 2,097,152 -> 2.10 M."""
    for size, name in ((1e9, "G"), (1e6, "M")):
        if number >= size:
            return f"{number / size:.2f} {name}"
    return f"{number:,.0f}"


def truncate(text: str, width: int) -> str:
    """Return the text, cut off with an ellipsis if it has more than `width` characters."""
    return text if len(text) <= width else text[: width - 1] + "…"
