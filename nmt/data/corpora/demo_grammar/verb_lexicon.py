"""The verbs of the demo corpus: principal parts, and the kinds of noun each takes as an object.

The kinds are those of the noun lexicon, so that people eat food and read books.
"""

from nmt.data.corpora.demo_grammar.lexemes import (
    irregular_verb,
    modal,
    parse_verbs,
)

# English base, past, -ing and particle | German infinitive, participle, sein, du and er | objects
TRANSITIVE = parse_verbs(
    """
    buy bought buying | kaufen gekauft | snack groceries staple drink book press clothes object
    sell sold selling | verkaufen verkauft | clothes object appliance vehicle furniture
    eat ate eating | essen gegessen isst isst | snack dish groceries staple
    drink drank drinking | trinken getrunken | drink
    cook cooked cooking | kochen gekocht | dish staple
    read read reading | lesen gelesen liest liest | book writing press
    write wrote writing | schreiben geschrieben | writing book
    translate translated translating | übersetzen übersetzt | writing book
    look looked looking for | suchen gesucht | object container clothes animal person sibling
    repair repaired repairing | reparieren repariert | appliance vehicle
    wash washed washing | waschen gewaschen wäschst wäscht | clothes
    clean cleaned cleaning | putzen geputzt | room opening
    visit visited visiting | besuchen besucht | person sibling relative
    meet met meeting | treffen getroffen triffst trifft | person sibling
    ask asked asking | fragen gefragt | person sibling relative
    greet greeted greeting | grüßen gegrüßt | person sibling relative
    paint painted painting | malen gemalt | animal object
    draw drew drawing | zeichnen gezeichnet | animal object
    carry carried carrying | tragen getragen trägst trägt | container object
    play played playing | spielen gespielt | instrument
    open opened opening | auf+machen aufgemacht | opening container
    close closed closing | zu+machen zugemacht | opening container
    call called calling | an+rufen angerufen | person sibling relative
    invite invited inviting | ein+laden eingeladen lädst lädt | person sibling relative
    pick picked picking up | ab+holen abgeholt | person sibling relative
    tidy tidied tidying up | auf+räumen aufgeräumt | room
    put put putting on | an+ziehen angezogen | clothes
    turn turned turning on | ein+schalten eingeschaltet | appliance
    turn turned turning off | aus+schalten ausgeschaltet | appliance
    """
)

# verbs of state: no progressive in English, and kept in the present here
STATIVE = parse_verbs(
    """
    see saw seeing | sehen gesehen siehst sieht | person sibling animal object vehicle
    need needed needing | brauchen gebraucht | object clothes appliance container vehicle
    love loved loving | lieben geliebt | person sibling relative animal
    know knew knowing | kennen gekannt | person sibling relative
    understand understood understanding | verstehen verstanden | person sibling writing
    hear heard hearing | hören gehört | person animal
    """
)

DATIVE = parse_verbs(
    """
    help helped helping | helfen geholfen hilfst hilft | person sibling relative
    thank thanked thanking | danken gedankt | person sibling relative
    answer answered answering | antworten geantwortet | person sibling relative
    follow followed following | folgen gefolgt sein | person sibling animal
    listen listened listening to | zu+hören zugehört | person sibling relative
    """
)

DITRANSITIVE = parse_verbs(
    """
    give gave giving | geben gegeben gibst gibt | object book clothes snack
    show showed showing | zeigen gezeigt | object book writing clothes
    send sent sending | schicken geschickt | object writing book
    bring brought bringing | bringen gebracht | object container snack drink
    lend lent lending | leihen geliehen | object book container vehicle
    """
)

INTRANSITIVE = parse_verbs(
    """
    sleep slept sleeping | schlafen geschlafen schläfst schläft |
    work worked working | arbeiten gearbeitet |
    laugh laughed laughing | lachen gelacht |
    dance danced dancing | tanzen getanzt |
    sing sang singing | singen gesungen |
    wait waited waiting | warten gewartet |
    cry cried crying | weinen geweint |
    study studied studying | lernen gelernt |
    eat ate eating | essen gegessen isst isst |
    stay stayed staying | bleiben geblieben sein |
    go went going shopping | ein+kaufen eingekauft |
    fall fell falling asleep | ein+schlafen eingeschlafen sein schläfst schläft |
    watch watched watching television | fern+sehen ferngesehen siehst sieht |
    """
)

# events one dates by the clock
PUNCTUAL = parse_verbs(
    """
    get got getting up | auf+stehen aufgestanden sein |
    wake woke waking up | auf+wachen aufgewacht sein |
    come came coming back | zurück+kommen zurückgekommen sein |
    arrive arrived arriving | an+kommen angekommen sein |
    depart departed departing | ab+fahren abgefahren sein fährst fährt |
    """
)

MOTION = parse_verbs(
    """
    go went going | gehen gegangen sein |
    run ran running | laufen gelaufen sein läufst läuft |
    drive drove driving | fahren gefahren sein fährst fährt |
    """
)
TRAVEL = parse_verbs(
    """
    drive drove driving | fahren gefahren sein fährst fährt |
    travel traveled traveling | reisen gereist sein |
    fly flew flying | fliegen geflogen sein |
    """
)
LIVE = parse_verbs("live lived living | wohnen gewohnt |")[0]
CONTROL = parse_verbs(
    """
    try tried trying | versuchen versucht |
    hope hoped hoping | hoffen gehofft |
    promise promised promising | versprechen versprochen versprichst verspricht |
    """
)
REPORT = parse_verbs(
    """
    say said saying | sagen gesagt |
    think thought thinking | glauben geglaubt |
    hope hoped hoping | hoffen gehofft |
    """
)
COST = parse_verbs("cost cost costing | kosten gekostet |")[0]
RAIN = parse_verbs("rain rained raining | regnen geregnet |")[0]
SNOW = parse_verbs("snow snowed snowing | schneien geschneit |")[0]
BELONG = parse_verbs("belong belonged belonging to | gehören gehört |")[0]
LIE = parse_verbs("lie lay lying | liegen gelegen |")[0]
GET = parse_verbs("get got getting | bekommen bekommen | writing object")[0]


BE = irregular_verb("be was being", "sein", "bin bist ist sind sind", "war warst war waren waren")
HAVE = irregular_verb(
    "have had having",
    "haben",
    "habe hast hat haben haben",
    "hatte hattest hatte hatten hatten",
    "object animal vehicle container",
)
WILL = irregular_verb("will would -", "werden", "werde wirst wird werden werden", "")
LIKE = irregular_verb(
    "like liked liking",
    "mögen",
    "mag magst mag mögen mögen",
    "mochte mochtest mochte mochten mochten",
    "animal drink groceries book writing",
)
WISSEN = irregular_verb("know knew knowing", "wissen", "weiß weißt weiß wissen wissen", "")


_DARF = "darf darfst darf dürfen dürfen"
MODALS = (
    modal(
        "can",
        "could",
        "können",
        "kann kannst kann können können",
        "konnte konntest konnte konnten konnten",
    ),
    modal(
        "must",
        "had to",
        "müssen",
        "muss musst muss müssen müssen",
        "musste musstest musste mussten mussten",
    ),
    modal(
        "want to",
        "wanted to",
        "wollen",
        "will willst will wollen wollen",
        "wollte wolltest wollte wollten wollten",
    ),
    modal("should", "", "sollen", "soll sollst soll sollen sollen", ""),
    modal("may", "", "dürfen", _DARF, ""),
    modal("would like to", "", "mögen", "möchte möchtest möchte möchten möchten", ""),
)
# "must not" forbids, so German says "darf nicht"
MUST_NOT = modal("must", "", "dürfen", _DARF, "")

# English verbs of which "last year" makes sense, or the time of day, or a place is worth telling
YEARLY = ("buy", "sell", "visit", "meet", "work", "write", "read", "study", "travel", "fly")
HOURLY = ("meet", "call", "pick", "eat", "open", "close", "go", "drive", "fly")
SETTLED = (
    "buy",
    "sell",
    "eat",
    "drink",
    "read",
    "write",
    "meet",
    "look",
    "paint",
    "draw",
    "greet",
    "play",
    "visit",
)
