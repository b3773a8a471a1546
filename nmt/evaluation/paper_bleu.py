"""BLEU as "Attention Is All You Need" and other papers of its time measured it.

Hypothesis and reference are tokenised like tokenizer.perl of Moses (by sacremoses), and the tokens
are counted like multi-bleu.perl: cased, one reference. The languages decide what else is done:

- English-German follows get_ende_bleu.sh of Tensor2Tensor: after tokenising, a word with a hyphen
  becomes three tokens (`rich-text` -> `rich ##AT##-##AT## text`). Typographic quotation marks
  become `"` on both sides, because Tensor2Tensor did so in its reference (its issue 317).
- English-French is tokenised with -a, which cuts at hyphens (`@-@`), after ’ has become ', like
  the test set of fairseq's prepare-wmt14en2fr.sh.
- Other languages are only tokenised.

sacremoses matches the script of the paper's time: on newstest2013 and newstest2014 the two agree
on all German sentences, on all but one French and on all but three English sentences.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from nmt.data.languages import look_up_language
from nmt.evaluation.metrics import Score, multi_bleu_metric
from nmt.recipe.config import SEVERAL_LANGUAGES

PUBLISHED = {
    ("wmt14/full", "en", "de"): "27.3 (base) and 28.4 (big)",
    ("wmt14/full", "en", "fr"): "38.1 (base) and 41.8 (big; 41.0 in its section 6.1)",
    ("wmt13", "en", "de"): "25.8 (base) and 26.4 (big) of its table 3, without averaging",
}
"""scores in the paper (tables 2 and 3); the keys are sacreBLEU's test set, source and target"""

_DOUBLE_QUOTES = re.compile("[“”„‟«»]")
_SINGLE_QUOTES = re.compile("[‘’‚‛‹›´]")
_HYPHENATED = re.compile(r"(\S)-(\S)")


def has_paper_bleu(languages: tuple[str, str]) -> bool:
    """Return whether Moses can tokenise the target: one language with spaces between words."""
    target = look_up_language(languages[1])
    # the spaces of Korean separate phrases, not words
    return not target.is_unspaced and target.base not in ("ko", SEVERAL_LANGUAGES)


def language_codes(languages: tuple[str, str]) -> tuple[str, str]:
    """Return source and target as two letters where they have such a code: deu_AT becomes de."""
    return look_up_language(languages[0]).base, look_up_language(languages[1]).base


def paper_bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    languages: tuple[str, str],
    confidence: bool = True,
) -> Score:
    """Return the BLEU of plain text as papers of 2017 measured it for (source, target) languages.

    The score is named "paper BLEU" for the languages of the paper, otherwise "Moses BLEU". Its
    signature names the tokenizer.

    Raises:
        DataError: There are no sentences, or the numbers of hypotheses and references differ.
    """
    languages = language_codes(languages)
    name = "paper BLEU" if languages in (("en", "de"), ("en", "fr")) else "Moses BLEU"
    tokenize, tokenizer_name = moses_tokenizer(languages)
    hypotheses = list(map(tokenize, hypotheses))
    references = list(map(tokenize, references))
    score = multi_bleu_metric(name).score(hypotheses, references, confidence)
    signature = score.signature.replace("|tok:none|", f"|tok:{tokenizer_name}|")
    return replace(score, signature=signature)


def moses_tokenizer(languages: tuple[str, str]) -> tuple[Callable[[str], str], str]:
    """Return a function that tokenises a line of the target language, and its name in signatures.

    `languages` are the codes of source and target; both decide, as the top of this file says.
    """
    import sacremoses

    moses = sacremoses.MosesTokenizer(languages[1])
    version = f"sacremoses-{sacremoses.__version__}"

    def tokenize(line: str) -> str:
        return str(moses.tokenize(line, return_str=True))

    def tokenize_german(line: str) -> str:
        plain_quotes = _SINGLE_QUOTES.sub("'", _DOUBLE_QUOTES.sub('"', line))
        return _HYPHENATED.sub(r"\1 ##AT##-##AT## \2", tokenize(plain_quotes))

    def tokenize_french(line: str) -> str:
        line = line.replace("’", "'")
        return str(moses.tokenize(line, aggressive_dash_splits=True, return_str=True))

    if languages == ("en", "de"):
        return tokenize_german, f"{version}-de-quotes-ATAT"
    if languages == ("en", "fr"):
        return tokenize_french, f"{version}-fr-a"
    return tokenize, f"{version}-{languages[1]}"
