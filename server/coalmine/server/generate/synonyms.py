"""Words that may stand for each other, written for this file. A group is `word|others`; groups are separated by " ; ".

The first word of a group may be replaced by the others, and so may every single word among them unless it
has too many meanings.
"""

from __future__ import annotations

_GROUPS = """
need|require ; say|mention ; says|mentions ; used|made use of ; nope|no|nah ; hard|difficult|tough ; sure|certain ;
bit|little help|assist|lend a hand ; fix|repair|mend|sort out ; broken|not working|busted ; error|failure|fault
problem|issue|trouble ; problems|issues|troubles ; start|begin|launch ; started|began|launched ; stop|halt|quit
try|attempt|give it a go with ; tried|attempted|had a go at ; use|make use of|work with
using|working with|making use of ; install|set up ; installed|set up
installing|setting up ; remove|delete|get rid of|uninstall ; removed|deleted|got rid of
download|fetch|grab ; get|obtain|grab ; got|received ; give|hand|provide ; gave|handed|provided
make|create|produce ; made|created|produced ; buy|purchase|pick up ; bought|purchased|picked up
show|display|reveal ; shows|displays|reveals ; looking|searching|hunting ; find|locate|track down
found|located|tracked down ; change|modify|alter|switch ; changed|modified|altered
run|execute|launch ; running|executing|active ; open|open up|bring up ; close|shut|shut down ; click|press|hit
needs|requires|calls for ; want|would like|wish for ; wanted|wished|hoped
love|adore|really like ; hate|can't stand|detest ; think|believe|reckon|guess ; thought|believed|figured
understand|grasp|get ; seen|noticed|observed ; said|stated|mentioned
tell|inform|let know ; told|informed|let know ; ask|inquire|question
asked|inquired|questioned ; talk|speak|chat ; talking|speaking|chatting ; read|go through|look through
write|put down|compose ; wait|hold on|hang on ; going|heading|moving ; went|headed|moved ; come|arrive|turn up
came|arrived|turned up ; leave|depart|go away ; keep|hold on to|retain ; seems|appears|looks ; seem|appear|look
working|functioning|operating
happen|occur|take place ; happened|occurred|took place ; happens|occurs|takes place ; good|decent|fine|nice
great|excellent|terrific|wonderful ; awesome|fantastic|brilliant|amazing ; bad|poor|lousy|awful
terrible|dreadful|horrible ; best|finest|top ; better|superior|nicer ; worse|poorer ; easy|simple|straightforward
easier|simpler ; big|large|huge ; small|little|tiny ; new|fresh|recent ; old|aged|ancient
fast|quick|speedy ; quickly|fast|rapidly ; slow|sluggish ; slowly|gradually
wrong|incorrect|mistaken ; strange|odd|weird ; cool|neat|nifty ; crazy|insane|mad ; funny|amusing|hilarious
happy|glad|pleased ; sad|unhappy|down ; angry|mad|furious ; tired|exhausted|worn out ; bored|fed up
maybe|perhaps|possibly ; probably|most likely|presumably ; really|truly|genuinely
very|extremely|really ; just|simply|only ; also|as well|too ; always|at all times|every time
often|frequently|many times ; sometimes|now and then|at times
again|once more|one more time ; now|at the moment|right now ; today|this day ; soon|before long|shortly
later|afterwards|at a later time ; before|earlier than|prior to ; already|by now ; still|even now|as yet
everyone|everybody|all people
something|some thing|a thing ; someone|somebody|a person ; anyone|anybody ; many|numerous|plenty of
enough|sufficient ; because|since|as ; but|however|though|yet
although|even though|while ; so|thus|therefore ; thanks|thank you|cheers|many thanks ; thx|thanks|ty
please|kindly|if you would ; sorry|apologies|my apologies ; hello|hi|hey|greetings ; yes|yeah|yep|indeed
ok|okay|alright|all right|fine ; lol|haha|hehe|heh ; wow|whoa|oh my ; guys|folks|everyone
people|folks|persons ; man|dude|mate ; guy|fellow|chap ; friend|pal|buddy ; kid|child ; kids|children|youngsters
house|home|place ; job|work|position ; money|cash|funds ; idea|notion|thought ; ideas|notions|thoughts
question|query ; answer|reply|response ; stuff|things|material ; place|spot|location
machine|computer|box ; computer|machine|pc ; laptop|notebook|portable computer
pc|computer|machine ; internet|net|web ; website|site|web page ; page|web page|site ; file|document
files|documents ; folder|directory ; directory|folder ; disk|drive ; drive|disk ; screen|display|monitor
program|application|app ; programs|applications|apps ; app|application|program ; command|instruction
terminal|console|command line ; version|release|edition ; package|software package ; packages|software packages
settings|preferences|options ; option|choice|setting ; update|refresh|bring up to date ; reboot|restart
restart|reboot ; login|log in|sign in ; password|passphrase ; server|host ; channel|room ; default|standard|preset
manually|by hand ; automatically|on its own|by itself ; currently|at present|presently
basically|essentially|in essence ; apparently|evidently|it seems ; actually|in fact|as a matter of fact
obviously|clearly|plainly ; definitely|certainly|for sure ; especially|particularly|in particular
government|administration|public authority ; nation|country|land ; country|nation|land ; countries|nations|lands
citizens|inhabitants ; congress|the legislature|lawmakers ; law|statute|act ; laws|statutes|acts
treaty|agreement|accord ; war|conflict|armed conflict ; peace|harmony|tranquility ; economy|economic life|business
tax|levy|duty ; taxes|levies|duties ; trade|commerce ; commerce|trade ; jobs|employment|positions
workers|laborers|employees ; farmers|growers|agricultural producers ; freedom|liberty ; liberty|freedom
important|significant|weighty ; necessary|needed|required ; report|account|statement ; increase|rise|growth
increased|risen|grown ; decrease|decline|reduction ; reduce|lower|cut ; improve|better|enhance
continue|carry on|go on ; continued|carried on|went on ; support|back|uphold ; protect|guard|shield
provide|supply|furnish ; provided|supplied|furnished ; require|demand|call for ; recommend|suggest|advise
consider|weigh|contemplate ; must|have to|need to ; should|ought to
cannot|can't|am unable to ; may|might|could ; upon|on ; within|inside ; during|in the course of|throughout
between|among ; through|by way of|via ; therefore|hence|for this reason ; subject|topic|matter ; purpose|aim|goal
result|outcome ; results|outcomes ; effort|endeavor|attempt ; efforts|endeavors|attempts ; children|kids|young ones
families|households ; world|globe ; future|years ahead ; america|the united states|this country
americans|people of this country ; strong|powerful|sturdy ; entire|whole ; whole|entire
several|a number of|various ; various|several|different ; different|distinct|other ; same|identical ; food|meal|dish
staff|team|employees ; restaurant|place to eat|eatery ; movie|film|picture
song|tune|track ; watch|view|look at ; sleep|rest|get some shut-eye ; miss|long for ; fun|entertaining|enjoyable
nice|pleasant|lovely ; beautiful|gorgeous|lovely ; dinner|supper|evening meal ; morning|early hours ; night|evening
tonight|this evening ; tomorrow|the next day ; yesterday|the day before today ; friends|pals|buddies
girl|young lady ; boy|lad ; mom|mother|mum ; dad|father|pop ; hurts|aches|is sore ; sick|ill|unwell
"""

_SHORTHAND = """
u|you ; ur|your ; r|are ; pls|please ; plz|please ; thx|thanks ; ppl|people ; cuz|because ; b4|before ; gr8|great
2day|today ; 2moro|tomorrow ; im|i'm ; dont|don't ; cant|can't ; wont|won't ; didnt|didn't ; doesnt|doesn't
isnt|isn't ; whats|what's ; thats|that's ; btw|by the way ; afaik|as far as i know ; iirc|if i remember correctly
idk|i don't know ; imo|in my opinion ; imho|in my humble opinion ; brb|be right back ; omg|oh my god
wtf|what on earth ; np|no problem ; ty|thank you ; gonna|going to ; wanna|want to ; gotta|have to ; kinda|kind of
dunno|don't know ; lemme|let me ; gimme|give me ; yea|yes ; ya|yes ; yup|yes ; nvm|never mind ; tho|though
thru|through ; til|until ; w/|with ; w/o|without
"""

_CONTRACTIONS = """
it's|it is ; i'm|i am ; you're|you are ; we're|we are ; they're|they are ; he's|he is ; she's|she is
that's|that is ; there's|there is ; what's|what is ; where's|where is ; who's|who is ; i've|i have ; you've|you have
we've|we have ; they've|they have ; i'll|i will ; you'll|you will ; we'll|we will ; they'll|they will
it'll|it will ; i'd|i would ; you'd|you would ; don't|do not ; doesn't|does not ; didn't|did not ; can't|cannot
couldn't|could not ; won't|will not ; wouldn't|would not ; shouldn't|should not ; isn't|is not ; aren't|are not
wasn't|was not ; weren't|were not ; haven't|have not ; hasn't|has not ; hadn't|had not ; let's|let us
"""


_ONE_WAY = frozenset(
    (
        "question", "operating", "reply", "state", "act", "resources", "standing", "persons", "inquire", "certain",
        "as", "no", "mad", "fine", "still", "home", "place", "position", "act",
        "may", "might", "looks", "back", "better", "top", "down", "fast", "mate",
        "executive", "get", "hit", "move", "web", "box", "way", "line", "land",
        "trust", "date", "matter", "state", "fetch", "fault", "quit", "switch", "press",
        "obtain", "fellow", "pop", "track", "picture", "dish", "display", "monitor", "put",
        "dear", "light", "duty", "since", "while", "yet", "though", "indeed", "simply",
        "only", "standard", "account", "thought", "attempt", "past", "mark", "mention", "drive",
        "hand",
    )
)  # fmt: skip
"""Words with too many other meanings to be replaced when they are met."""


def _lines(block: str) -> list[list[str]]:
    return [group.strip().split("|") for line in block.strip().splitlines() for group in line.split(" ; ")]


def _synonyms() -> dict[str, tuple[str, ...]]:
    table: dict[str, dict[str, None]] = {}
    for first, *others in _lines(_GROUPS):
        mutual = [word for word in others if " " not in word and word not in _ONE_WAY]
        for word in (first, *mutual):
            table.setdefault(word, {}).update(dict.fromkeys(other for other in (first, *others) if other != word))
    for short, long in _lines(_SHORTHAND):
        table.setdefault(short, {})[long] = None
    return {word: tuple(others) for word, others in table.items()}


SYNONYMS: dict[str, tuple[str, ...]] = _synonyms()
"""Lower-case word -> what may stand for it."""

EXPANSIONS: dict[str, str] = {short: long for short, long in _lines(_CONTRACTIONS)}  # noqa: C416 - lists, not pairs
"""Lower-case contraction -> its long form."""

CONTRACTED: dict[str, str] = {long: short for short, long in _lines(_CONTRACTIONS)}
"""Lower-case long form (two words or one) -> its contraction."""
