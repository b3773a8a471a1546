"""BLEU as "Attention Is All You Need" and the papers of its time measured it.

Both sides are tokenised as tokenizer.perl of Moses does it (sacremoses, the only file that knows
it), and multi-bleu.perl counts the tokens: cased, one reference. What is done beside that differs
from pair to pair:

- English-German follows get_ende_bleu.sh of Tensor2Tensor: after tokenising, a word with a hyphen
  is cut in three (`rich-text` -> `rich ##AT##-##AT## text`). Its reference was made by hand with
  every typographic quotation mark turned into `"` (tensor2tensor issue 317); here both sides are.
- English-French is tokenised with -a, which cuts at hyphens (`@-@`), after ’ has become ', as
  fairseq's prepare-wmt14en2fr.sh does to the test set; so nothing is cut once more.
- Any other pair is tokenised and no more.

sacremoses is the script as it was when the paper was written: on newstest2013 and newstest2014 the
two agree on every German sentence, and on all but one French and three English ones.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from nmt.evaluation.metrics import UNSPACED, Score, language_code, multi_bleu, refuse_unequal

PUBLISHED = {
    ("wmt14/full", "en", "de"): "27.3 (base) and 28.4 (big)",
    ("wmt14/full", "en", "fr"): "38.1 (base) and 41.8 (big; 41.0 in its section 6.1)",
    ("wmt13", "en", "de"): "25.8 (base) and 26.4 (big) of its table 3, without averaging",
}
"""the paper's scores (tables 2 and 3), by sacreBLEU's name of the test set and languages"""

_DOUBLE_QUOTES = re.compile("[“”„‟«»]")
_SINGLE_QUOTES = re.compile("[‘’‚‛‹›´]")
_HYPHENATED = re.compile(r"(\S)-(\S)")


def has_paper_bleu(languages: tuple[str, str]) -> bool:
    """Whether Moses' tokeniser finds the words of the target language."""
    return language_code(languages[1]) not in UNSPACED | {"ko"}


def codes_of(languages: tuple[str, str]) -> tuple[str, str]:
    """The languages without their countries: de_AT is de."""
    source, target = map(language_code, languages)
    return source, target


def paper_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    languages: tuple[str, str],
    confidence: bool = True,
) -> Score:
    """Score plain text by the protocol of the pair; "Moses BLEU" where the paper has none.

    Raises:
        DataError: no sentences, or not as many hypotheses as references.
    """
    languages = codes_of(languages)
    name = "paper BLEU" if languages in (("en", "de"), ("en", "fr")) else "Moses BLEU"
    refuse_unequal(hypotheses, references, name)
    tokenize, protocol = moses_tokenizer(languages)
    sides = [[tokenize(line) for line in lines] for lines in (hypotheses, references)]
    score = multi_bleu(sides[0], sides[1], name, confidence)
    return replace(score, signature=score.signature.replace("|tok:none|", f"|tok:{protocol}|"))


def moses_tokenizer(languages: tuple[str, str]) -> tuple[Callable[[str], str], str]:
    """What turns a line of the target language into tokens for the pair, and its short name."""
    import sacremoses

    moses = sacremoses.MosesTokenizer(languages[1])
    version = f"sacremoses-{sacremoses.__version__}"

    def plainly(line: str) -> str:
        return str(moses.tokenize(line, return_str=True))

    def german(line: str) -> str:
        quotes = _SINGLE_QUOTES.sub("'", _DOUBLE_QUOTES.sub('"', line))
        return _HYPHENATED.sub(r"\1 ##AT##-##AT## \2", plainly(quotes))

    def french(line: str) -> str:
        line = line.replace("’", "'")
        return str(moses.tokenize(line, aggressive_dash_splits=True, return_str=True))

    if languages == ("en", "de"):
        return german, f"{version}-de-quotes-ATAT"
    if languages == ("en", "fr"):
        return french, f"{version}-fr-a"
    return plainly, f"{version}-{languages[1]}"
