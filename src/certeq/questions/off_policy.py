"""Off-policy evaluation: a second opinion on a policy's value, straight from the episodes, and whether to trust it.

The estimators are told in `certeq.questions.estimators`. Intervals come from drawing whole episodes again with
replacement: behavior and fitted values are estimated anew each time, and the middle part of the results is kept. They
are only as good as the weights: with few episodes in effect, the same few are drawn again and again, and an interval
can be far too narrow. So the verdict goes by the effective size first.

A policy that was learned from the same rows was chosen partly for its luck in them. No estimate here corrects for that:
for an unbiased second opinion learn from some episodes and evaluate on others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import ArrayLike, Floats, Rng, check_level, generator, middle, whole
from certeq.base.display import between, number, several, told
from certeq.base.errors import InputError
from certeq.base.texts import finite
from certeq.data.batch import Batch
from certeq.data.look import FEW as ROWS
from certeq.questions.asking import ADVICE, Asking, Question, too_long
from certeq.questions.episodes import watched
from certeq.questions.estimators import METHODS, effective_size, estimates
from certeq.questions.fitted import occupied
from certeq.questions.log import Log, read_log

MOST_ROWS = 200_000  # that a report draws again: more take minutes
AGAIN = 200  # times that the episodes are drawn again for the intervals of a report
FEW = 10.0  # episodes in effect, below which no estimate that weighs episodes is to be trusted
UNWATCHED = 0.01  # share of the time after watching stopped, above which importance sampling is of something else
UNTRIED = 0.05  # share of the policy's decisions that nobody took, above which no estimate can tell
THIN = 0.05  # share of them that were taken fewer than 5 times in their state, above which none is trusted
WEIGHED = ("pdis", "wpdis", "wis", "dr", "wdr")
WATCHED = ("pdis", "wpdis", "wis")  # these know nothing beyond the end of watching


@dataclass(frozen=True)
class Estimate:
    """One estimate of a policy's value."""

    name: str  # a key of METHODS
    value: float  # NaN where it cannot be told
    low: float
    high: float
    effective_size: float | None  # episodes in effect; None for fitted Q evaluation, which weighs none
    note: str  # what to know about it, if anything
    trusted: bool  # whether it can be held against the model's value

    @property
    def words(self) -> str:
        """Name of the estimator in words."""
        return METHODS[self.name]

    def to_json(self) -> dict[str, Any]:
        """Write it as plain values, None for what is not a number."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__} | {"words": self.words}
        return plain | {name: finite(plain[name]) for name in ("value", "low", "high")}


@dataclass(frozen=True)
class OffPolicy:
    """What the episodes say about a policy, and how much that is worth."""

    estimates: tuple[Estimate, ...]
    episodes: int
    effective_size: float
    unwatched: float  # share of the time that counts which lies after watching stopped
    untried: float  # share of decisions, as often as the rows lead to them, for actions never taken there
    thin: float  # the same for actions taken fewer than 5 times there, never included
    behavior: str  # "given" or "estimated"
    level: float
    model: tuple[float, float, float] | None  # the model's value with its interval

    def __getitem__(self, name: str) -> Estimate:
        """Estimate by name."""
        return next(estimate for estimate in self.estimates if estimate.name == name)

    @property
    def apart(self) -> tuple[str, ...]:
        """Trusted estimates whose interval does not meet that of the model's value."""
        if self.model is None:
            return ()
        _, low, high = self.model
        return tuple(e.name for e in self.estimates if e.trusted and (e.low > high or e.high < low))

    @property
    def trust(self) -> bool:
        """Whether the weighted estimates can be trusted, and nothing that can be trusted speaks against the model."""
        return self.effective_size >= FEW and self.untried <= UNTRIED and self.thin <= THIN and not self.apart

    def _repr_html_(self) -> str:
        return told([self.verdict])

    @property
    def verdict(self) -> str:
        """What to make of it, in words."""
        return " ".join(_sentences(self))

    def to_json(self) -> dict[str, Any]:
        """Write everything as plain values."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        said = {"estimates": [estimate.to_json() for estimate in self.estimates]}
        return plain | said | {"apart": list(self.apart), "trust": self.trust, "verdict": self.verdict}


def off_policy(
    batch: Batch,
    policy: ArrayLike,
    discount: float,
    *,
    behavior: ArrayLike | None = None,
    smoothing: float = 0.0,
    reward: ArrayLike | None = None,
    horizon: int | None = None,
    action_values: ArrayLike | None = None,
    model_value: float | Sequence[float] | None = None,
    bootstrap: int = 1000,
    level: float = 0.9,
    rng: Rng = 0,
) -> OffPolicy:
    """Estimate what a policy is worth from episodes of another one, where these episodes began.

    Parameters
    ----------
    batch
        Rows in episodes, without gaps.
    policy
        ``(S,)`` actions, -1 for any at random, or ``(S, A)`` probabilities; with a horizon H also ``(H, S)`` or
        ``(H, S, A)``.
    discount, horizon
        As in planning; with a horizon the value is of so many decisions.
    behavior, smoothing
        Who chose: probabilities ``(S, A)``, or ``(n,)`` of each row's action. Estimated unless given: how often each
        action was taken in its state, after ``smoothing`` rows, spread evenly, were added to each state.
    reward
        Known rewards ``(S, A)``, in place of those of the rows.
    action_values
        ``(S, A)``, what doubly robust estimates start from, such as those of the fitted model; fitted unless given.
    model_value
        The value to compare with: a number, or mean, low and high.
    bootstrap, level, rng
        How many times the episodes are drawn again for the intervals, their level, and the seed.
    """
    log = read_log(
        batch,
        policy,
        discount,
        behavior=behavior,
        smoothing=smoothing,
        reward=reward,
        horizon=horizon,
        action_values=action_values,
    )
    check_level(level)
    E = len(log.length)
    found = estimates(log, np.ones((1, E), dtype=np.int64))
    again = estimates(log, generator(rng).multinomial(E, np.full(E, 1 / E), size=whole("bootstrap", bootstrap, 1)))
    facts = _Facts(E, effective_size(log), log.unwatched, *_seldom(log, 1, ROWS))
    return OffPolicy(
        tuple(_estimate(name, float(found[name][0]), again[name], level, facts) for name in METHODS),
        *facts,
        behavior="estimated" if behavior is None else "given",
        level=level,
        model=None if model_value is None else _model(model_value),
    )


class _Facts(NamedTuple):
    """What decides whether estimates can be trusted; see `OffPolicy`."""

    episodes: int
    effective_size: float
    unwatched: float
    untried: float
    thin: float


def _estimate(name: str, value: float, again: Floats, level: float, facts: _Facts) -> Estimate:
    """An estimate with its interval, and what there is to say about it."""
    defined = again[np.isfinite(again)]
    low = high = np.nan
    if isfinite(value) and facts.episodes > 1 and len(defined):
        low, high = middle(defined, level)
    weighed, partial = name in WEIGHED, name in WATCHED and facts.unwatched > UNWATCHED
    thin = weighed and facts.effective_size < FEW
    notes = []
    if not isfinite(value):
        notes.append(_undefined(name))
    elif facts.episodes == 1:
        notes.append("one episode has no interval")
    elif len(defined) < len(again):
        notes.append(f"undefined in {len(again) - len(defined)} of {len(again)} draws, which are left out")
    if thin:
        notes.append(f"do not trust this: in effect, {_counting(facts)}")
    if partial:
        notes.append(f"the watched part only: {facts.unwatched:.0%} of the time that counts comes after it")
    supported = facts.untried <= UNTRIED and facts.thin <= THIN
    if not supported and not notes:
        notes.append("too many of its decisions are for actions that were seldom or never taken there")
    trusted = isfinite(low) and supported and not thin and not partial
    size = facts.effective_size if weighed else None
    return Estimate(name, value, float(low), float(high), size, "; ".join(notes), trusted)


def _counting(facts: _Facts | OffPolicy) -> str:
    """How many of all episodes count in effect, in words."""
    verb = "counts" if _size(facts) == "1" else "count"
    return f"{_size(facts)} of {several(facts.episodes, 'episode')} {verb}"


def _size(facts: _Facts | OffPolicy) -> str:
    """How many episodes count in effect, for people."""
    return number(round(facts.effective_size, 1))


def _undefined(name: str) -> str:
    if name == "fqe":
        return "some states of the rows never lead to an end: use a discount below 1, or a horizon"
    if name in ("dr", "wdr"):
        return "the fitted values it starts from are not defined"
    return "no episode follows the policy to the end"


def _seldom(log: Log, *times: int) -> list[float]:
    """How much of the policy is for actions that were taken fewer times than this in their state.

    Decisions count as often as the rows themselves lead to them under the policy, which need not be where the rows are.
    """
    often, unseen = occupied(log)
    visits = np.bincount(log.pair, minlength=often.size).reshape(often.shape)
    return [float(often[visits < least].sum()) + unseen for least in times]


def _model(value: float | Sequence[float]) -> tuple[float, float, float]:
    """The model's value with its interval; a number alone is an interval of no width."""
    ends = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if ends.shape == (1,):
        ends = np.repeat(ends, 3)
    if ends.shape != (3,) or not np.isfinite(ends).all() or not ends[1] <= ends[2]:
        raise InputError(f"model_value is a number, or mean, low and high; got {value!r}.")
    return float(ends[0]), float(ends[1]), float(ends[2])


def _sentences(found: OffPolicy) -> list[str]:
    said = []
    if found.effective_size < FEW:
        said.append(
            f"Do not trust the estimates that reweight episodes: in effect, {_counting(found)} for this policy, and it "
            f"takes at least {FEW:g}."
        )
    else:
        said.append(f"In effect, {_counting(found)} for this policy, which is enough to go by (at least {FEW:g}).")
    if found.untried > UNTRIED:
        said.append(
            f"{found.untried:.0%} of the policy's decisions are for actions that nobody took in those states: "
            "about these the data say nothing."
        )
    if found.thin > THIN:
        said.append(
            f"{found.thin:.0%} of its decisions are for actions that were taken fewer than {ROWS} times in those "
            "states: too little to trust any estimate."
        )
    if found.unwatched > UNWATCHED:
        said.append(
            f"{found.unwatched:.0%} of the time that counts comes after watching stopped: importance sampling "
            "covers the watched part only, and is not compared with the model."
        )
    return [*said, *_compared(found)]


def _compared(found: OffPolicy) -> list[str]:
    """How the trusted estimates stand to the model's value."""
    trusted = [estimate for estimate in found.estimates if estimate.trusted]
    if found.model is None:
        return []
    if not trusted:
        return ["No estimate can be compared with the model's value."]
    mean, low, high = found.model
    shown = number(mean) + (f" ({between(low, high)})" if low < high else "")
    if not found.apart:
        return [f"The model's value, {shown}, agrees with {', '.join(e.words for e in trusted)}."]
    above, below = ([e for e in trusted if e.name in found.apart and (e.low > high) is up] for up in (True, False))
    said = []
    if above:
        said.append(
            f"Disagreement: {_shown(above)} lies above the model's value, {shown}. Where the policy was learned from "
            "these very rows, estimates without regularization are expected to flatter it; on other rows, ask what the "
            "model leaves out."
        )
    if below:
        said.append(
            f"Disagreement: the model's value, {shown}, lies above {_shown(below)}: it promises more than the episodes "
            "show. Ask what the states leave out."
        )
    return said


def _shown(estimates: list[Estimate]) -> str:
    return ", ".join(f"{e.words} ({between(e.low, e.high)})" for e in estimates)


def _ask(asking: Asking) -> OffPolicy:
    learned, model = asking.learned, asking.found.get("posterior")
    rows = learned.case.data.rows("This part values the advice by whole episodes")
    if len(rows) > MOST_ROWS:
        by_itself = "certeq.questions.off_policy.off_policy(batch, learned.policy.actions, learned.rules.discount)"
        raise too_long(f"With {len(rows):,} rows, drawn again {AGAIN} times,", by_itself)
    return off_policy(
        rows,
        learned.policy.actions,
        learned.rules.discount,
        reward=None if learned.rewards is not None else learned.table,
        horizon=learned.rules.horizon or watched(learned.batch, learned.rules.discount),
        model_value=None if model is None else model.interval(ADVICE),
        bootstrap=AGAIN,
        rng=asking.rng,
    )


ASKED = Question(
    "off_policy",
    _ask,
    doing="Estimating values from the episodes alone",
    asks="whether the episodes themselves back the advice",
    after=("posterior",),
)
