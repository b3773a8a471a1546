"""The nouns, places and names of the demo corpus, English and German side by side.

Nouns carry gender, plural and, where they follow the n-declension, their weak form.
"""

from nmt.data.corpora.demo_grammar.lexemes import (
    Noun,
    parse_adverbials,
    parse_nouns,
    parse_places,
)

MASS_KINDS = ("groceries", "staple", "drink")
PEOPLE = ("person", "relative", "sibling")

NOUNS: tuple[Noun, ...] = (
    *parse_nouns(
        "person",
        """
        man men Mann m Männer
        woman women Frau f Frauen
        child children Kind n Kinder
        boy boys Junge m Jungen Jungen
        girl girls Mädchen n Mädchen
        teacher teachers Lehrer m Lehrer
        student students Student m Studenten Studenten
        friend friends Freund m Freunde
        neighbor neighbors Nachbar m Nachbarn Nachbarn
        doctor doctors Arzt m Ärzte
        guest guests Gast m Gäste
        colleague colleagues Kollege m Kollegen Kollegen
        tourist tourists Tourist m Touristen Touristen
        gentleman gentlemen Herr m Herren Herrn
        lady ladies Dame f Damen
        farmer farmers Bauer m Bauern Bauern
        baker bakers Bäcker m Bäcker
        waiter waiters Kellner m Kellner
        nurse nurses Krankenschwester f Krankenschwestern
        artist artists Künstler m Künstler
        pilot pilots Pilot m Piloten Piloten
        """,
    ),
    *parse_nouns(
        "sibling",
        """
        brother brothers Bruder m Brüder
        sister sisters Schwester f Schwestern
        uncle uncles Onkel m Onkel
        aunt aunts Tante f Tanten
        daughter daughters Tochter f Töchter
        son sons Sohn m Söhne
        """,
    ),
    *parse_nouns(
        "relative",
        """
        mother - Mutter f -
        father - Vater m -
        grandmother - Großmutter f -
        grandfather - Großvater m -
        """,
    ),
    *parse_nouns(
        "animal",
        """
        dog dogs Hund m Hunde
        cat cats Katze f Katzen
        horse horses Pferd n Pferde
        bird birds Vogel m Vögel
        cow cows Kuh f Kühe
        mouse mice Maus f Mäuse
        rabbit rabbits Kaninchen n Kaninchen
        duck ducks Ente f Enten
        pig pigs Schwein n Schweine
        goat goats Ziege f Ziegen
        monkey monkeys Affe m Affen Affen
        """,
    ),
    *parse_nouns(
        "snack",
        """
        apple apples Apfel m Äpfel
        cake cakes Kuchen m Kuchen
        pear pears Birne f Birnen
        banana bananas Banane f Bananen
        roll rolls Brötchen n Brötchen
        cookie cookies Keks m Kekse
        tomato tomatoes Tomate f Tomaten
        """,
    ),
    *parse_nouns(
        "dish",
        """
        egg eggs Ei n Eier
        potato potatoes Kartoffel f Kartoffeln
        sausage sausages Wurst f Würste
        carrot carrots Karotte f Karotten
        """,
    ),
    *parse_nouns(
        "groceries",
        """
        bread - Brot n -
        cheese - Käse m -
        butter - Butter f -
        ham - Schinken m -
        chocolate - Schokolade f -
        honey - Honig m -
        """,
    ),
    *parse_nouns(
        "staple",
        """
        rice - Reis m -
        meat - Fleisch n -
        fish - Fisch m -
        soup - Suppe f -
        """,
    ),
    *parse_nouns(
        "drink",
        """
        water - Wasser n -
        milk - Milch f -
        tea - Tee m -
        coffee - Kaffee m -
        juice - Saft m -
        beer - Bier n -
        wine - Wein m -
        lemonade - Limonade f -
        """,
    ),
    *parse_nouns(
        "writing",
        """
        letter letters Brief m Briefe
        story stories Geschichte f Geschichten
        poem poems Gedicht n Gedichte
        report reports Bericht m Berichte
        text texts Text m Texte
        """,
    ),
    *parse_nouns(
        "book",
        """
        book books Buch n Bücher
        novel novels Roman m Romane
        """,
    ),
    *parse_nouns(
        "press",
        """
        newspaper newspapers Zeitung f Zeitungen
        magazine magazines Zeitschrift f Zeitschriften
        """,
    ),
    *parse_nouns(
        "clothes",
        """
        shirt shirts Hemd n Hemden
        jacket jackets Jacke f Jacken
        hat hats Hut m Hüte
        dress dresses Kleid n Kleider
        coat coats Mantel m Mäntel
        skirt skirts Rock m Röcke
        sweater sweaters Pullover m Pullover
        scarf scarves Schal m Schals
        blouse blouses Bluse f Blusen
        """,
    ),
    *parse_nouns(
        "object",
        """
        key keys Schlüssel m Schlüssel
        ball balls Ball m Bälle
        gift gifts Geschenk n Geschenke
        umbrella umbrellas Regenschirm m Regenschirme
        cup cups Tasse f Tassen
        plate plates Teller m Teller
        knife knives Messer n Messer
        fork forks Gabel f Gabeln
        spoon spoons Löffel m Löffel
        picture pictures Bild n Bilder
        flower flowers Blume f Blumen
        pencil pencils Bleistift m Bleistifte
        """,
    ),
    *parse_nouns(
        "container",
        """
        bag bags Tasche f Taschen
        suitcase suitcases Koffer m Koffer
        box boxes Kiste f Kisten
        bottle bottles Flasche f Flaschen
        """,
    ),
    *parse_nouns(
        "opening",
        """
        door doors Tür f Türen
        window windows Fenster n Fenster
        """,
    ),
    *parse_nouns(
        "appliance",
        """
        computer computers Computer m Computer
        radio radios Radio n Radios
        lamp lamps Lampe f Lampen
        machine machines Maschine f Maschinen
        """,
    ),
    *parse_nouns(
        "vehicle",
        """
        car cars Auto n Autos
        bicycle bicycles Fahrrad n Fahrräder
        """,
    ),
    *parse_nouns(
        "transport",
        """
        train trains Zug m Züge
        bus buses Bus m Busse
        tram trams Straßenbahn f Straßenbahnen
        ship ships Schiff n Schiffe
        """,
    ),
    *parse_nouns(
        "instrument",
        """
        guitar - Gitarre f -
        piano - Klavier n -
        """,
    ),
    *parse_nouns(
        "furniture",
        """
        table tables Tisch m Tische
        chair chairs Stuhl m Stühle
        bed beds Bett n Betten
        cupboard cupboards Schrank m Schränke
        sofa sofas Sofa n Sofas
        shelf shelves Regal n Regale
        """,
    ),
    *parse_nouns(
        "room",
        """
        kitchen kitchens Küche f Küchen
        room rooms Zimmer n Zimmer
        apartment apartments Wohnung f Wohnungen
        house houses Haus n Häuser
        cellar cellars Keller m Keller
        """,
    ),
)

# noun | English "at", German "at", German "to"
PLACES = parse_places(
    """
    park parks Park m Parks | in in in
    school schools Schule f Schulen | in in in
    station stations Bahnhof m Bahnhöfe | at an zu
    market markets Markt m Märkte | at auf auf
    church churches Kirche f Kirchen | in in in
    museum museums Museum n Museen | in in in
    restaurant restaurants Restaurant n Restaurants | in in in
    hotel hotels Hotel n Hotels | in in in
    library libraries Bibliothek f Bibliotheken | in in in
    theater theaters Theater n Theater | in in in
    hospital hospitals Krankenhaus n Krankenhäuser | in in in
    beach beaches Strand m Strände | at an an
    airport airports Flughafen m Flughäfen | at an zu
    city cities Stadt f Städte | in in in
    village villages Dorf n Dörfer | in in in
    forest forests Wald m Wälder | in in in
    lake lakes See m Seen | at an zu
    bridge bridges Brücke f Brücken | on auf zu
    office offices Büro n Büros | in in in
    garden gardens Garten m Gärten | in in in
    """
)

CITIES = parse_adverbials(
    """
    Berlin | Berlin
    Hamburg | Hamburg
    Munich | München
    Cologne | Köln
    Vienna | Wien
    Rome | Rom
    Paris | Paris
    London | London
    """
)

# people one may call one's own without surprise
OWNED = ("child", "teacher", "student", "friend", "neighbor", "doctor", "guest", "colleague")

NAMES_FEMININE = ("Anna", "Maria", "Lisa", "Emma", "Julia", "Sophie", "Laura", "Clara")
NAMES_MASCULINE = ("Paul", "Peter", "Max", "Jonas", "Thomas", "Felix", "David", "Martin")
SURNAMES = ("Müller", "Schmidt", "Weber", "Wagner", "Becker", "Hoffmann")
