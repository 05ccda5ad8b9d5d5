"""What generated people talk about, and how. Plain data: changing a line changes every generated data set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Topic:
    """What one community talks about.

    Attributes:
        things: singular count nouns that take "a new ...", "my ...".
        deeds: what was done, past tense, subject left out.
        woes: full clauses about what went wrong.
        tips: imperatives.
    """

    things: tuple[str, ...]
    deeds: tuple[str, ...]
    woes: tuple[str, ...]
    tips: tuple[str, ...]


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";"))


TOPICS: dict[str, Topic] = {
    "gardening": Topic(
        _listed(
            "compost heap; tomato bed; watering can; seed tray; greenhouse; rain barrel; plum tree; rose bush; herb "
            "pot; cold frame; hedge trimmer; potting bench; bean trellis; raised bed; lemon tree; wheelbarrow"
        ),
        _listed(
            "mulched the back bed; pulled up the last radishes; repotted the basil; tied up the runner beans; sowed "
            "a row of carrots; turned the compost; cut back the lavender; dug over the corner plot; planted out the "
            "leeks; thinned the beetroot; pruned the apple tree; saved seeds from the squash"
        ),
        _listed(
            "the slugs came back; frost got the dahlias; the hose split at the tap; blight is on the potatoes; "
            "something ate the lettuce down to the stalk; the soil is like concrete; half the seedlings bolted; "
            "greenfly took over; the gate blew off in the wind; nothing came up in the second row"
        ),
        _listed(
            "water early and only at the roots; never dig when the ground is wet; feed it once it flowers; leave a "
            "corner wild for the hedgehogs; pick often and it keeps coming; cover it with fleece at night; rotate "
            "the beds every year; harden the young plants off slowly"
        ),
    ),
    "cooking": Topic(
        _listed(
            "cast iron pan; sourdough starter; stock pot; bread knife; pasta machine; pressure cooker; pizza stone; "
            "spice rack; rice cooker; pie dish; wok; mortar; oven thermometer; casserole; cutting board; curry "
            "recipe"
        ),
        _listed(
            "baked two loaves of rye; simmered bones for stock; pickled a jar of onions; rolled out fresh noodles; "
            "roasted a tray of squash; toasted the cumin first; made dumplings from scratch; browned the butter; "
            "slow-cooked a shoulder of lamb; whipped up an omelette; fermented some cabbage; tried a cheese soufflé"
        ),
        _listed(
            "the sauce split; the dough would not rise; I burnt the garlic; the rice stuck to the bottom; it came "
            "out far too salty; the cake sank in the middle; the oven runs hot; we ran out of paprika; the filling "
            "leaked everywhere; the caramel seized up"
        ),
        _listed(
            "salt the water like the sea; let the meat rest before you carve; taste before you add anything; keep "
            "the dough wetter than you think; bloom the spices in oil; sharpen the blade once a week; weigh "
            "everything; never crowd the pan"
        ),
    ),
    "cycling": Topic(
        _listed(
            "gravel bike; rear derailleur; saddle; chain; front light; touring rack; helmet; bottom bracket; "
            "commuter bike; tyre; bar tape; torque wrench; pannier; hub dynamo; pump; cassette"
        ),
        _listed(
            "rode out to the reservoir; climbed the north pass; trued the back wheel; swapped the brake pads; did a "
            "loop round the lake; raced the club ten; patched a tube by the road; re-indexed the gears; commuted "
            "through the sleet; joined the slow group; bled the brakes; tried the new bike lane"
        ),
        _listed(
            "the chain kept slipping; I got a flat on the descent; a spoke snapped; the headwind was brutal; a van "
            "passed far too close; the bearings grind; my knee started to ache; the battery of the lamp died; the "
            "gears skip under load; rain got into the hubs"
        ),
        _listed(
            "run the tyres softer than you think; wax the chain and stay clean; carry a spare tube; eat before you "
            "are hungry; look where you want to go; check the bolts every month; drop the saddle a little; take the "
            "lane at the junction"
        ),
    ),
    "photography": Topic(
        _listed(
            "tripod; prime lens; film camera; light meter; camera strap; flash; darkroom; macro lens; polariser; "
            "negative scanner; zoom lens; print; sensor; memory card; softbox; enlarger"
        ),
        _listed(
            "shot the harbour at dawn; developed a roll in the sink; scanned a box of slides; photographed the "
            "street market; waited for the kingfisher; printed a contact sheet; cleaned the sensor; bracketed the "
            "sunset; took portraits by the window; edited the wedding set; walked the old town with one lens; tried "
            "a long exposure"
        ),
        _listed(
            "every frame was out of focus; the highlights are blown; the shutter jammed; dust is all over the "
            "negatives; the card got corrupted; fog rolled in before I set up; the battery died in the cold; the "
            "print came out green; I left the lens cap on; the light vanished in a minute"
        ),
        _listed(
            "get closer and then closer again; expose for the highlights; shoot the same corner every day; back up "
            "before you format; turn round and look behind you; use the window as your softbox; leave the flash at "
            "home; print your best ten"
        ),
    ),
    "board games": Topic(
        _listed(
            "card sleeve; dice tower; rulebook; expansion; game shelf; score pad; trick-taker; dungeon crawler; "
            "wooden insert; player board; word game; worker placement game; solo mode; starter deck; miniature; "
            "train game"
        ),
        _listed(
            "taught the rules to four people; lost by a single point; traded all my sheep away; painted the last "
            "goblin; sorted the tokens into bags; played the long campaign; won on the very last tile; bluffed my "
            "way through; set up the whole map; drafted a terrible hand; tried the two-player variant; sleeved the "
            "entire deck"
        ),
        _listed(
            "a piece is missing; nobody read the rules; the game dragged on past midnight; the dice hated me; "
            "someone spilled tea on the map; the runaway leader problem is real; the box no longer closes; we forgot "
            "a whole phase; two cards are misprinted; the table was too small"
        ),
        _listed(
            "read the rules before the guests come; keep the first game short; never trade with the leader; teach by "
            "playing a round; draw cards early; put snacks on another table; take notes in long campaigns; swap "
            "seats after each game"
        ),
    ),
    "home network": Topic(
        _listed(
            "router; access point; backup disk; firewall rule; switch; media server; patch panel; password manager; "
            "VPN tunnel; printer; DNS filter; smart plug; laptop; log file; fibre modem; network cable"
        ),
        _listed(
            "moved the server to the cellar; flashed the new firmware; pulled a cable through the attic; set up a "
            "guest network; restored from last week's backup; blocked the ad domains; replaced the noisy fan; wrote "
            "a script for the snapshots; split the smart devices off; renewed the certificates; mapped every port; "
            "upgraded the kernel"
        ),
        _listed(
            "the connection drops every hour; DHCP hands out nonsense; the disk is full again; the update broke the "
            "login; the printer has vanished; packets get lost upstairs; the fan screams; the certificate expired; "
            "the provider changed my address; nothing resolves"
        ),
        _listed(
            "test the backup and not only the job; change one thing at a time; label both ends of the cable; turn "
            "off what you do not use; read the log first; keep the old config; give every device a fixed address; "
            "never expose the admin page"
        ),
    ),
    "running": Topic(
        _listed(
            "trail shoe; long run; interval session; race plan; foam roller; heart rate strap; half marathon; "
            "running belt; easy run; hill loop; training block; recovery week; water bottle; rain jacket; finish "
            "line; parkrun"
        ),
        _listed(
            "ran the canal path; did six hill repeats; finished the tempo run; jogged with the dog; entered the "
            "autumn race; stretched properly for once; paced a friend; ran by feel and left the watch; did strides "
            "on the track; got lost in the woods; beat my old time; took a rest day"
        ),
        _listed(
            "my calf tightened up; the blister opened; I went out too fast; the last mile was awful; the laces came "
            "undone; my watch lost the signal; the stitch would not go; the path was all mud; I hit the wall; my "
            "shin complains"
        ),
        _listed(
            "keep the easy days easy; sleep more than you train; add a little each week; start slower than you want; "
            "lift something heavy twice a week; change shoes before they die; drink before you are thirsty; walk the "
            "steep part"
        ),
    ),
    "film": Topic(
        _listed(
            "director's cut; soundtrack; silent film; film club; projector; plot twist; screenplay; documentary; "
            "heist movie; sequel; restoration; matinee; opening scene; western; short film; thriller"
        ),
        _listed(
            "watched the whole trilogy; fell asleep in the third act; went to the late show; reviewed it for the "
            "club; cried at the ending; dragged the family to the cinema; paused it to look up the actor; sat in the "
            "front row; listened to the commentary; saw the restored print; guessed the killer; read the book first"
        ),
        _listed(
            "the ending makes no sense; the dialogue was mumbled; somebody talked all the way through; it is an hour "
            "too long; the remake ruins it; the subtitles lagged; the trailer gave everything away; the cut is "
            "choppy; the villain is cardboard; the screen was too dark"
        ),
        _listed(
            "skip the trailer; go in knowing nothing; see it on a big screen; stay for the credits; watch the "
            "original first; give it twenty minutes; turn the motion smoothing off; read the reviews afterwards"
        ),
    ),
}

CLAUSES = (
    "{deed} {time} and the {thing} {verdict}",
    "finally {deed}, took me {count} {units}",
    "{woe} {time}, so much for my {thing}",
    "if you own a {quality} {thing}: {tip}",
    "spent {count} {units} on the {thing} {time} and it {verdict}",
    "{who} {said} about my {quality} {thing}",
    "{woe}, and that after I {deed}",
    "is a {quality} {thing} worth the money or should I keep the old {other}",
    "{time} I {deed} with {who}",
    "my {thing} is {count} {units} old and {verdict}",
    "{tip}, that is all {who} ever told me",
    "would swap my {other} for a {quality} {thing} any day",
    "{deed} {count} times now, the {other} still {verdict}",
    "{who} swears by a {quality} {thing}, I just {deed}",
    "no {thing} {time} because {woe}",
    "rule number {count}: {tip}",
    "{time} {woe} but at least the {other} {verdict}",
    "thinking about a {quality} {thing} since {who} {deed}",
)

TIMES = _listed(
    "this morning; last night; on Monday; on Tuesday; on Wednesday; on Thursday; on Friday; on Saturday; on Sunday; "
    "before work; after lunch; at the weekend; over the holidays; in the rain; just now; an hour ago; yesterday; two "
    "days ago; last week; this month; at dawn; around noon; once again; for the first time"
)
VERDICTS = _listed(
    "works like a dream; looks better than ever; is a total loss; did the job; surprised me; let me down; was worth "
    "every cent; still needs work; is beyond repair; turned out fine; makes me happy; drives me mad; could be worse; "
    "held up well; deserves a rest; is nothing special"
)
QUALITIES = _listed(
    "second-hand; decent; cheap; fancy; tiny; brand new; borrowed; home-made; broken; sturdy; proper; vintage; "
    "lightweight; spare; red; ridiculous"
)
COUNTS = tuple(str(number) for number in range(2, 60))
UNITS = _listed("minutes; hours; days; weeks; months")
PEOPLE = _listed(
    "my sister; my neighbour; a friend; my dad; the guy at the shop; my partner; an old colleague; my cousin; "
    "somebody online; my aunt; the kids; our teacher; my best mate; a stranger; my boss; grandma"
)
REMARKS = _listed("laughed; asked; joked; complained; raved; went on; dreamt; gossiped; wrote a poem; started a fight")

OPENERS = _listed(
    "Honestly; Ok so; Quick update; Not gonna lie; Well; Small win; For the record; Hear me out; Guess what; Fun "
    "fact; Dear diary; Hot take; As always; Update; Right; Hi all; Listen; True story; Note to self; Oh well"
)
CLOSERS = _listed(
    "Anyone else?; Just my two cents; What do you think?; That is all; Wish me luck; Never again; Worth it; No "
    "regrets; Over and out; More soon; Send help; Cheers; Life is good; Lesson learned; Thoughts?; Ask me anything; "
    "You get the idea; Onwards"
)
EMOJI = tuple("🙂😀😅😂🤔😎🙃😭🎉🔥👍🙏💪🌱🍅🚲📷🎲💻🏃🎬✨☕🌧")
PUNCTUATION = (
    (". ", "."),
    ("! ", "!"),
    ("... ", "..."),
    (", ", ""),
    (" - ", "."),
    (". ", "."),
    (" / ", ""),
    (". ", ""),
)

MENTIONS = (
    "signed, {name}",
    "it is {name} again, by the way",
    "write to {email} if you want the details",
    "my address is still {email}",
    "call me on {phone}",
    "text {phone} and I will bring it over",
    "greetings from {city}",
    "things are different here in {city}",
    "anybody else near {city}",
    "not bad for somebody who works as: {job}",
    "back to my day job tomorrow ({job})",
    "{pet} sat and watched",
    "my {kind} {pet} is not impressed",
    "had to chase {pet} out of the room first",
)
PETS = _listed("cat; dog; parrot; rabbit; tortoise; hamster; goldfish; ferret; gecko; canary; guinea pig; hen")
PET_NAMES = _listed(
    "Biscuit; Pickles; Mango; Ziggy; Waffles; Nacho; Olive; Pepper; Gizmo; Mochi; Rocket; Noodle; Clementine; Sir "
    "Paws; Turnip; Domino; Marble; Kiwi; Sputnik; Dumpling; Fig; Bandit; Hazel; Captain; Juniper; Toffee; Moose; "
    "Pixel; Bramble; Otto"
)
AREA_CODES = (
    "202",
    "206",
    "303",
    "312",
    "404",
    "415",
    "503",
    "512",
    "602",
    "617",
    "702",
    "713",
    "718",
    "804",
    "901",
    "919",
)
