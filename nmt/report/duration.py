"""How long something takes, in words."""


def duration(seconds: float) -> str:
    """40 -> 40 s; 90 -> 1.5 min; 5400 -> 1 h 30 min; 180000 -> 2 d 2 h."""
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    if round(minutes, 1) < 10:
        return f"{minutes:.1f} min"
    if round(minutes) < 60:
        return f"{minutes:.0f} min"
    hours, rest = divmod(round(minutes), 60)
    return f"{hours} h {rest:02} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
