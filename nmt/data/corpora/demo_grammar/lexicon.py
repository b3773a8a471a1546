"""The adjectives, adverbs and small words of the demo corpus, English and German side by side.

Every English word has exactly one German rendering.
"""

from nmt.data.corpora.demo_grammar.lexemes import (
    parse_adjectives,
    parse_adverbials,
)

ADJECTIVES = parse_adjectives(
    """
    big groß bigger größer | animal object container furniture room place vehicle
    small klein smaller kleiner | person animal object container furniture room place vehicle
    old alt older älter | person animal object clothes vehicle appliance place writing book
    young jung younger jünger | person animal
    new neu newer neuer | object clothes vehicle appliance furniture book container instrument
    good gut | person writing book press drink groceries staple
    red rot | clothes object vehicle container furniture appliance opening
    blue blau | clothes object vehicle container furniture opening
    green grün | clothes object vehicle container opening
    black schwarz | clothes animal vehicle container
    white weiß | clothes animal vehicle furniture opening
    yellow gelb | clothes object vehicle container
    brown braun | clothes animal furniture container
    long lang longer länger | writing book
    short kurz shorter kürzer | writing book
    warm warm | clothes drink room
    cold kalt | drink room
    hot heiß | drink staple
    fresh frisch | groceries snack staple
    beautiful schön more_beautiful schöner | clothes object place writing book room instrument
    heavy schwer heavier schwerer | container furniture appliance
    friendly freundlich friendlier freundlicher | person
    happy glücklich happier glücklicher | person
    sad traurig | person writing book
    ill krank | person animal
    strong stark stronger stärker | person animal
    hungry hungrig | person animal
    clever klug | person animal
    famous berühmt more_famous berühmter | person place
    rich reich richer reicher | person
    poor arm poorer ärmer | person
    quiet ruhig | person place room
    clean sauber | clothes room
    dirty schmutzig | clothes room vehicle
    modern modern | appliance vehicle furniture
    interesting interessant more_interesting interessanter | writing book press place
    boring langweilig | writing book press
    important wichtig | writing book press
    empty leer | container room
    sweet süß | snack drink
    comfortable bequem | furniture clothes
    lazy faul | person animal
    polite höflich | person
    cheap billig cheaper billiger | clothes object vehicle appliance furniture
    """
)

PAST_TIMES = parse_adverbials(
    """
    yesterday | gestern
    last week | letzte Woche
    last year | letztes Jahr
    """
)
PRESENT_TIMES = parse_adverbials(
    """
    today | heute
    now | jetzt
    """
)
FUTURE_TIMES = parse_adverbials(
    """
    tomorrow | morgen
    next week | nächste Woche
    on Monday | am Montag
    on Tuesday | am Dienstag
    on Wednesday | am Mittwoch
    on Thursday | am Donnerstag
    on Friday | am Freitag
    on Saturday | am Samstag
    on Sunday | am Sonntag
    """
)
HABIT_TIMES = parse_adverbials(
    """
    every day | jeden Tag
    every week | jede Woche
    in the morning | am Morgen
    in the evening | am Abend
    in summer | im Sommer
    in winter | im Winter
    """
)
FREQUENCIES = parse_adverbials(
    """
    often | oft
    always | immer
    never | nie
    sometimes | manchmal
    rarely | selten
    """
)
MANNERS = {
    "sing": parse_adverbials("loudly | laut\nquietly | leise"),
    "laugh": parse_adverbials("loudly | laut\nquietly | leise"),
    "work": parse_adverbials("slowly | langsam\nquickly | schnell\ncarefully | sorgfältig"),
    "study": parse_adverbials("quickly | schnell\ncarefully | sorgfältig"),
    "dance": parse_adverbials("slowly | langsam\nquickly | schnell"),
}
CONJUNCTIONS = {
    "because": "weil",
    "although": "obwohl",
    "if": "wenn",
    "that": "dass",
    "whether": "ob",
}
QUESTION_WORDS = {"where": "wo", "when": "wann", "why": "warum"}
