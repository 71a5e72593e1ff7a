"""Which column is what: as told, otherwise guessed from common spellings, and every guess said aloud."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from certeq.base.display import shorten
from certeq.base.errors import InputError, nearest

WORDS = {  # lower case, separators left out; the first that is there wins
    "next_state": """nextstate statenext snext nexts sprime stateprime nextobs nextobservation obsnext observationnext
        nextobservations newstate newobs newobservation nextstates successor successorstate tostate nextcell
        nextcluster""",
    "action": """action actions a act actiontaken actionid actionname treatment intervention decision therapy drug
        medication arm choice dose dosage""",
    "reward": "reward rewards r rew rwd immediatereward outcome utility benefit payoff score",
    "episode": """episode episodeid ep episodenumber trajectory trajectoryid traj trajid icustayid icustay stayid stay
        hadmid encounter encounterid admission admissionid session sessionid patient patientid patientnumber patno
        pt ptno ptid mrn subject subjectid participant participantid person personid user userid customer customerid
        run runid id""",
    "time": """time t timestep step timeindex stepid stepindex tick visit visitnumber period round bloc block month
        week day hour minute year date datetime timestamp charttime chartdate visitdate visittime encounterdate
        assessmentdate observationdate eventdate eventtime months weeks days hours minutes""",  # amounts come last
    "done": "done terminated terminal terminals terminations isterminal terminate ended dead died death",
    "truncated": "truncated truncations truncation censored timeout timeouts timelimit",
    "ends": "",  # never guessed
    "by": "",  # nor this
    "duration": "",
    "beside": "",
    "state": "state states s obs observation observations currentstate fromstate cell cluster",
}
COUNTED = "steps"  # numbers them, or counts those that somebody walked: a person has to say
SPELLINGS = {role: tuple(words.split()) for role, words in WORDS.items()}
SEVERAL = ("state", "next_state", "action", "beside")  # roles that several columns may have together
SINGLE = ("reward", "episode", "time", "done", "truncated", "ends", "by", "duration")  # roles of one column
SHARED = ("action", "episode")  # roles whose column may tell groups apart as well
MARKS = ("done", "truncated", "ends")  # roles that may also be said by what a column says
UNWANTED = """accident* adverse* amputat* anxi* arrest* attrition backlog* bad bill billed bills bleed* bounce* breach*
    breakdown* bug bugs burnout cancel* charge chargeback* charged charges churn* collision* complain* complication*
    congest* cost costly costs crash* craving* crime* damag* danger* dead deadly death deaths debt* deceas* defaulted
    defaults defect* deficit* delay* delinquen* demise depress* deteriorat* die died dies disab* disease* dissatisf*
    distress* downtime dropout* dying embol* emission* err error* expend* expens* expir* fail* fall fallen falls fatal*
    fault* fee fees fever* fined fines fraud* haemorrhag* harm harmed harmful harms hazard* hemorrhag* hospitalis*
    hospitaliz* hyperglyc* hypoglyc* hypotens* hypox* ill illness* incidence incident incidents infarct* infect* injur*
    killed late latencies latency lateness leak* lethal* los loss losses lost mae mape missed mistake* morbid*
    mort mortal* mse nausea nonadher* outage* overdos* overdraft* overdue overrun* overspen* pain painful pains penal*
    phq pollut* price prices punish* qsofa queue* queuing readm* recidiv* recurrence* refund* regret* rehosp* reinfarct*
    reinfect* reject* relaps* reoffen* rework* risk risks risky rmse sae saes saps scrap scrapped scraps seizure* sepsis
    septic severe severit* shortage* shortfall* sick* sofa apache spend* spent spoil* stockout* stress* stroke strokes
    suffer* suicid* symptom* tardiness tardy theft* thrombosis toxic* uninstall* unpaid unsubscrib* violat* vomit* wait
    waited waiting waits wastage waste wasted wastes worse* wound* wrong*"""  # words, and beginnings of words
SURELY = "cost costs dead death deaths deceas* died dies mort mortal*"  # no measurement that states are made of
TURNED = """neg negative minus saved saving* avoided avoidance averted prevented reduc* decreas* improv* relie* resolved
    solved free without no not surviv* reward rewards"""  # then it is wanted
INDEX = ("", "index", "unnamed0", "level0", "rownumber", "rowid", "row", "rownames")  # numbers of rows, not states
LATER = re.compile(r"^next[_ .]|[_ .]next$|['′]$", re.IGNORECASE)  # belongs to the next row, whatever it is
NUMBERED = re.compile(r"(state|states|s|obs|observation|observations|feature|x)\d+")


@dataclass(frozen=True)
class Roles:
    """The columns that make a batch; ``next_state`` is empty in the long form, where the next row tells it."""

    state: tuple[str, ...]
    next_state: tuple[str, ...]
    action: tuple[str, ...]
    reward: str | None = None
    episode: str | None = None
    time: str | None = None
    done: str | None = None
    truncated: str | None = None
    ends: str | None = None  # says at the last row of an episode whether it was over there
    by: str | None = None  # tells groups apart
    minimize: bool = False  # whether less of the reward is better
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # done, ... -> words that mark it, if not yes
    rest: bool = False  # whether the state is all that was left, since nobody said what it is
    notes: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()  # added up beside the reward
    duration: str | None = None  # how long it took until the next decision

    def without(self, names: Iterable[str]) -> Roles:
        """The same roles without some columns of the state, of which there must be others."""
        state = tuple(name for name in self.state if name not in names)
        if not state:
            raise InputError(
                f"Of the columns that are left for the state, {_some(self.state)}, all are known only afterward. Name "
                "those that make the state with state= (--state)."
            )
        gone = tuple(f"{name!r} may also be" for name in names)
        said = [note.partition(" as the state") for note in self.notes if not note.startswith(gone)]
        read = f"I read {_some([repr(name) for name in state])}"
        return replace(
            self, state=state, notes=tuple(f"{read if mark else head}{mark}{tail}" for head, mark, tail in said)
        )

    @property
    def goal(self) -> str:
        """Which way is better, in words; nothing where there is no reward."""
        if self.reward is None:
            return ""
        name = shorten(self.reward, 60)
        return f"Smaller '{name}' is better: rewards are minus it." if self.minimize else f"Larger '{name}' is better."

    def role_of(self, name: str) -> str:
        """What a column is, in words."""
        several = [_role(role) for role in SEVERAL if name in getattr(self, role)]
        single = [_role(role) for role in SINGLE if getattr(self, role) == name]
        return ", ".join([*several, *single]) or "not used"

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that are used, each once."""
        single = (getattr(self, role) for role in SINGLE)
        several = [name for role in SEVERAL for name in getattr(self, role)]
        return tuple(dict.fromkeys([*several, *(name for name in single if name)]))


def plain(name: str) -> str:
    """A column's name in lower case without separators; a prime is spelled out."""
    return re.sub(r"[^0-9a-z]", "", name.lower().replace("'", "prime").replace("′", "prime"))


def find_roles(
    names: Sequence[str], told: Mapping[str, Any], layout: str = "auto", minimize: bool | None = None
) -> Roles:
    """Decide which column is what.

    ``told`` gives for a role a column, several (state, next_state, action), False for "there is none", or None for
    "find it". ``minimize`` says whether less of the reward is better; None for "whatever its name suggests".
    """
    values = {role: _values(given) for role, given in told.items() if _by_value(role, given, names)}
    told = {role: values[role][0] if role in values else given for role, given in told.items()}
    known = {role: _told(role, given, names) for role, given in told.items()}
    if layout == "long":
        known["next_state"] = ()
    alone = {role: columns for role, columns in known.items() if role != "beside"}  # a dose may be an action as well
    taken = {name for columns in alone.values() for name in columns or ()}
    guessed: dict[str, str] = {}
    for role in SPELLINGS:
        if known.get(role) is None:
            shared = known.get("by") or () if role in SHARED else ()  # groups of episodes, or by what was done
            spelled = _spelled(role, [name for name in names if name not in taken or name in shared])
            if spelled is not None:
                guessed[role] = spelled
                taken.add(spelled)
    roles = {role: (guessed[role],) if role in guessed else known.get(role) or () for role in SPELLINGS}
    if not roles["action"]:
        raise _not_found("action", names)
    if not roles["reward"] and known.get("reward") is None:
        raise _not_found("reward", names)
    state, following, notes = _states(names, roles, known, layout)
    if not following and not roles["episode"] and not roles["time"] and layout != "long":
        raise InputError(
            "I cannot tell which rows follow one another: there is no next state, no episode and no time column. Say "
            "next_state=, episode= or time= (--next-state, --episode, --time), or layout='long' if the whole table is "
            f"one episode in order. {_columns(names)}"
        )
    taken |= set(known.get("beside") or ())
    counted = next((name for name in names if plain(name) == COUNTED and name not in taken), None)
    if counted is not None and not following and not roles["time"] and known.get("time") is None:
        raise InputError(
            f"I cannot tell whether {counted!r} is the time or a number of steps that somebody took. Say "
            f"time={counted!r} (--time {shlex.quote(counted)}), or time=False (--time none) if the rows of an episode "
            "stand in order."
        )
    single = {role: next(iter(roles[role]), None) for role in SINGLE}
    found = Roles(state, following, roles["action"], beside=roles["beside"], **single)  # type: ignore[arg-type]
    unsaid = {role for role in SPELLINGS if known.get(role) is None}
    if minimize is not None and found.reward is None:
        raise InputError("minimize= is about the reward column, and there is none. Leave it out (--minimize).")
    if found.reward is not None and minimize is None and bad_sounding(found.reward):
        raise _which_way(found.reward)
    return replace(
        found,
        minimize=bool(minimize),
        rest=known.get("state") is None and "state" not in guessed and not following,
        values={role: words for role, (_, words) in values.items()},
        notes=(*_aloud(found, unsaid, guessed), *notes, *_unused(names, found)),
    )


def _states(
    names: Sequence[str],
    roles: Mapping[str, tuple[str, ...]],
    known: Mapping[str, tuple[str, ...] | None],
    layout: str,
) -> tuple[tuple[str, ...], tuple[str, ...], list[str]]:
    """Find the state columns, their next-state partners, and what is to be said about them."""
    others = {name for role, columns in roles.items() if role not in ("state", "next_state") for name in columns}
    free = [name for name in names if name not in others]
    state, following = roles["state"], roles["next_state"]
    if known.get("state") is None:
        pairs = {} if layout == "long" or known.get("next_state") == () else _partners(free, free)
        if known.get("next_state"):
            state = _partners_of(following, free) or state
        elif not (state and following) and pairs:
            return tuple(pairs), tuple(pairs.values()), []
    elif known.get("next_state") is None and layout != "long":
        pairs = _partners(state, [name for name in names if name not in state])
        if len(pairs) == len(state):
            return state, tuple(pairs.values()), []
        if pairs:
            lone = next(name for name in state if name not in pairs)
            raise InputError(
                f"Column {lone!r} has no next state beside it, but {next(iter(pairs))!r} has. Say next_state=."
            )
        following = following if len(state) == 1 else ()
    notes: list[str] = []
    if not state and not following:
        state, notes = _rest(free)
    if layout == "explicit" and not following:
        raise _not_found("next_state", names)
    if not state:
        raise _not_found("state", names)
    if following and len(following) != len(state):
        raise InputError(
            f"There are {len(state)} state columns ({_some(state)}) and {len(following)} next-state columns "
            f"({_some(following)}). Say both, in the same order: state= and next_state= (--state, --next-state)."
        )
    return state, _in_order(state, following), notes


def _rest(free: Sequence[str]) -> tuple[tuple[str, ...], list[str]]:
    """In the long form the state is what is numbered like one, or all columns that are nothing else."""
    numbered = tuple(name for name in free if NUMBERED.fullmatch(plain(name)))
    if numbered:
        return numbered, []
    rest = tuple(name for name in free if plain(name) not in (*INDEX, *SPELLINGS["episode"]) and not LATER.search(name))
    spelled = {name: role for role, words in SPELLINGS.items() for name in rest if plain(name) in words}
    return rest, [
        f"{name!r} may also be the {_role(role)}, but is read as part of the state; say {role}= (--{role}) if not."
        for name, role in spelled.items()
    ]


def _partners(state: Iterable[str], among: Sequence[str]) -> dict[str, str]:
    """State columns that have a column for the next state, by name: next_x, x_next, x', new_x."""
    spelled: dict[str, str] = {}
    for name in among:
        spelled.setdefault(plain(name), name)
    found = {}
    for name in state:
        word = plain(name)
        for other in (f"next{word}", f"{word}next", f"{word}prime", f"new{word}"):
            if word and other in spelled and spelled[other] != name:
                found[name] = spelled[other]
                break
    return found


def _partners_of(following: Sequence[str], free: Sequence[str]) -> tuple[str, ...]:
    """State columns of the given next-state columns, or nothing where one of them has none."""
    back = {after: before for before, after in _partners([n for n in free if n not in following], following).items()}
    return tuple(back[name] for name in following) if all(name in back for name in following) else ()


def _in_order(state: tuple[str, ...], following: tuple[str, ...]) -> tuple[str, ...]:
    """Next-state columns in the order of the state columns, by name where all have one, otherwise as given."""
    pairs = _partners(state, following)
    return tuple(pairs[name] for name in state) if len(pairs) == len(state) else following


def _told(role: str, given: Any, names: Sequence[str]) -> tuple[str, ...] | None:
    """Read what was said about a role: None for nothing, () for "there is none", else its columns."""
    if given is None:
        return None
    if given is False or (isinstance(given, str) and given == "none" and "none" not in names):
        return ()
    columns = _names(role, given, names)
    if role not in SEVERAL and len(columns) != 1:
        raise InputError(f"{role} is one column; got {len(columns)}.")
    for name in columns:
        if name not in names:
            close = nearest(str(name), names)
            raise InputError(f"There is no column {name!r} to be the {_role(role)}.{close} {_columns(names)}")
    return columns


def words_in(name: str) -> list[str]:
    """The words of a column's name, in lower case: hospMort_28d is hosp, mort, d."""
    return re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])|([A-Z])(?=[A-Z][a-z])", r"\1\3 \2", name).lower())


def bad_sounding(name: str) -> bool:
    """Whether a column's name is that of something people want less of."""
    said = re.sub(r"\bno of\b", "", " ".join(words_in(name)))  # no_of_deaths are a number of them
    return _has(said, UNWANTED) and not _has(said, TURNED)


def _has(said: str, listed: str) -> bool:
    """Whether one of the words said is listed; a star stands for the rest of a word."""
    any_of = "|".join(listed.split()).replace("*", "[a-z]*")
    return re.search(rf"\b(?:{any_of})\b", said) is not None


def _which_way(name: str) -> InputError:
    return InputError(
        f"{name!r} sounds like something to have less of, and rewards are made as large as possible. Say "
        f"cost={name!r} (--cost {shlex.quote(name)}) if less of it is better, minimize=False (--maximize) if more is.",
        remedy={"cost": name, "reward": None},
    )


def _by_value(role: str, given: Any, names: Sequence[str]) -> bool:
    """Whether a mark is said by what a column says: ``{"outcome": ["death"]}``, or as text ``outcome=death``."""
    if role not in MARKS:
        return False
    return isinstance(given, Mapping) or (isinstance(given, str) and "=" in given and given not in names)


def _values(given: Any) -> tuple[str, tuple[str, ...]]:
    """The column that marks, and the words that it marks with."""
    if isinstance(given, Mapping):
        if len(given) != 1:
            raise InputError(f"Say one column and its values, such as {{'outcome': ['death']}}; got {given!r}.")
        ((name, words),) = given.items()
        listed = [words] if isinstance(words, str) or not isinstance(words, Iterable) else list(words)
    else:
        name, _, rest = given.partition("=")
        listed = rest.split(",")
    said = tuple(str(word).strip() for word in listed)
    if not all(said) or not said:
        raise InputError(f"Say which values mark it, such as outcome=death,discharge; got {given!r}.")
    return str(name).strip(), said


def _names(role: str, given: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Read the name of a column, or several."""
    several = isinstance(given, Iterable) and not isinstance(given, str | bytes)
    columns = tuple(given) if several else (given,)
    for name in columns:
        if not isinstance(name, str):
            wanted = "the name of a column, or several" if role in SEVERAL else "the name of a column"
            raise InputError(
                f"{role} must be {wanted}, as text; got {name!r}.{nearest(str(name), names)} {_columns(names)} Where "
                f"there is none, say {role}=False."
            )
    return columns


def _spelled(role: str, free: Sequence[str]) -> str | None:
    words: dict[str, str] = {}
    for name in free:
        words.setdefault(plain(name), name)
    return next((words[word] for word in SPELLINGS[role] if word in words), None)


def _not_found(role: str, names: Sequence[str]) -> InputError:
    option = role.replace("_", "-")
    also, harms = "", list[str]()
    if role == "reward":
        also = " If rewards are known, say reward=False and give them later, or give --reward-table FILE."
        harms = [name for name in names if bad_sounding(name)]
        if harms:
            cost = harms[0]
            also = f" If less of {cost!r} is what is wanted, say cost={cost!r} (--cost {shlex.quote(cost)}).{also}"
    return InputError(
        f"I cannot tell which column is the {_role(role)}. Say it with {role}= (--{option} on the command line).{also} "
        f"{_columns(names)}",
        remedy={"cost": harms[0]} if len(harms) == 1 and _has(plain(harms[0]), SURELY) else {},  # else a person chooses
    )


def _aloud(found: Roles, unsaid: set[str], guessed: Mapping[str, str]) -> list[str]:
    """Say what was guessed."""
    parts = [f"{name!r} as the {_role(role)}" for role, name in guessed.items() if "state" not in role]
    for role, columns in (("next_state", found.next_state), ("state", found.state)):
        if role in unsaid and columns:
            parts.insert(0, f"{_some([repr(name) for name in columns])} as the {_role(role)}")
    return [f"I read {', '.join(parts)}."] if parts else []


def _unused(names: Sequence[str], found: Roles) -> list[str]:
    unused = [name for name in names if name not in found.columns]
    return [f"Not used: {_some(unused)}."] if unused else []


def _role(role: str) -> str:
    words = {
        "next_state": "next state",
        "done": "mark of the end",
        "truncated": "mark of a cut",
        "ends": "mark of ends",
        "by": "group",
        "beside": "column to add up",
    }
    return words.get(role, role)


def _some(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(" ".join(name.split()) for name in names[:most]) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def _columns(names: Sequence[str]) -> str:
    return f"The columns are: {_some(names, 30)}."
