"""Pronouns of a French text whose gender only the sentence before tells.

An English sentence begins with "it" or "they", and its French translation with "il", "elle", "ils"
or "elles"; the sentence before begins with a subject that the pronoun can stand for ("This
function", "La fonction"). The pronoun is not impersonal ("il faut"), and no other word agrees with
it, as participles do: that would tell the gender without the context.
"""

import re

OTHER_GENDER = {"Il": "Elle", "Elle": "Il", "Ils": "Elles", "Elles": "Ils"}
IT = re.compile("(It|They) ")
IL = re.compile("(Ils?|Elles?) ")
DETERMINERS = {
    "Il": "un|le|ce|cet|son|notre|votre|chaque|l['’]",
    "Elle": "une|la|cette|sa|son|notre|votre|chaque|l['’]",
    "Ils": "les|des|ces|ses|nos|vos|deux|plusieurs",
    "Elles": "les|des|ces|ses|nos|vos|deux|plusieurs",
}
"""with which the subject begins that a pronoun stands for"""
IMPERSONAL = re.compile(
    r"Il (ne |n['’]|en |y )*(a (pas )?\b|arrive|convient|existe|fau[td]\w*|manque|reste|s['’]|"
    r"se peut|suffi\w*|vaut)|.* s['’]agi"
)
AGREES = re.compile(
    r"\b([eé]t(é|ant|ai\w*)|être|est|sont|fu(t|rent)|ser(a|ont|ai\w*)|soi(t|ent)|devi?en\w*|reste\w*|"
    r"sembl\w*|para[iî]\w*|(lui|elle|eux|elles)-mêmes?|seule?s?|tou(te)?s|celle\w*|celui\w*|ceux)\b|"
    r"^\w+ (l['’]|l[ae] |les |s['’]|se )"
)
"""what another word may agree with, which would tell the gender without the context"""


def wrong_gender(source: str, before: str, target: str) -> str | None:
    """Return a translation with a pronoun of the other gender, which the context rules out.

    `before` is the translation of the sentence before. None: something else tells the gender, or
    nothing does.
    """
    match = IL.match(target)
    if not (match and IT.match(source)):
        return None
    has_subject = re.match(rf"({DETERMINERS[match[1]]})\b", before, re.IGNORECASE)
    if not has_subject or IMPERSONAL.match(target) or AGREES.search(target):
        return None
    return OTHER_GENDER[match[1]] + target[match.end(1) :]
