"""What another program answers when it translates with a model that was exported for it."""

from typing import Literal, NamedTuple

LONGEST = 256
"""a translation of another program is cut after so many pieces, so that a check ends"""

NEVER = -1e4
"""the output bias of tokens that no translation has: their probability is exactly 0"""

Quantization = Literal[
    "int8", "int8_float32", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"
]
"""how weights can be stored other than in float32, in the words of CTranslate2"""


class EngineTranslation(NamedTuple):
    """The greedy translation of one text, by the program that an export was made for."""

    pieces: list[str]
    """target pieces without start and EOS; from `LONGEST` - 1 on it counts as cut"""
    log_p: float
    """sum of log P of the pieces and of EOS, in nats; whether tokens that no
    translation has, such as PAD, count in the softmax is left to the program; of a cut translation
    it is not compared"""
