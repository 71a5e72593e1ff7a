"""Groups: how well the advice is supported, followed and worth in each group of cases, and how far groups are apart.

Groups are no states: all are advised alike, from everybody's rows. What the advice is worth to a group is asked of its
own rows alone. They are drawn again, models are drawn from what they leave open, and the common advice, and what was
done in the group, are valued in each from where its episodes began. Draws of two groups have nothing to do with one
another, so that their differences hold the uncertainty of both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers, Rng, generator
from certeq.base.display import between, in_a_sentence, number, percent, several, told
from certeq.base.errors import InputError
from certeq.data.batch import Batch
from certeq.data.counts import count_again
from certeq.data.look import FEW
from certeq.data.sums import Sums, add_up
from certeq.learning.case import Case
from certeq.learning.learned import Learned, asked
from certeq.questions.asking import Asking, Question, affordable_draws
from certeq.questions.credible import CredibleInterval, Difference, credible, gained
from certeq.questions.episodes import behavior, watched
from certeq.questions.posterior import drawn_values
from certeq.questions.sparse_posterior import each_drawn
from certeq.questions.words import name as quoted

DRAWS = 200  # models for each group
HALF = 0.5
FEWEST = 10  # episodes, or rows without any, below which nothing about a group is well supported
LATE = -2  # in place of an action: the row comes after the last decision that is planned for
Z = 1.6448536269514722  # of the normal distribution, for 90% in the middle


class OneGroup(NamedTuple):
    """What is known of one group; None where nobody asked, or little support tells nothing."""

    name: str
    rows: int
    episodes: int | None
    supported: float  # share of its decisions in states where the group itself tried the advised action often enough
    agreement: tuple[float, float, float] | None  # share of its decisions that were as advised, and a 90% interval
    value: CredibleInterval | None = None  # of the advice, by the group's own rows
    gain: Difference | None = None  # of the advice over what was done in the group
    apart: CredibleInterval | None = None  # how much more it gains than the reference group
    agrees_more: tuple[float, float, float] | None = None  # how much more often it did as advised, with an interval

    @property
    def little(self) -> bool:
        """Whether it has too little support to say much about it."""
        units = self.rows if self.episodes is None else self.episodes
        return self.supported < HALF or units < FEWEST


@dataclass(frozen=True)
class Groups:
    """All groups, the one with most rows first: the others are compared with it."""

    by: str  # the column
    groups: tuple[OneGroup, ...]
    draws: int  # models for each; 0 where values were not asked for
    untold: bool = False  # whether what they gain is not told, since people acted on more than the states hold

    def __getitem__(self, name: str) -> OneGroup:
        """A group by its name."""
        return next(group for group in self.groups if group.name == name)

    def _repr_html_(self) -> str:
        return told(self.lines())

    def lines(self) -> list[str]:
        """All of it in words."""
        first, *others = self.groups
        found = [
            f"{several(len(self.groups), 'group')} by {quoted(self.by)}. All are advised alike; what that is worth to "
            "a group is judged by its own rows alone."
        ]
        found += [self._line(group) for group in self.groups]
        sure = [group for group in others if group.apart is not None and not group.apart.low <= 0 <= group.apart.high]
        for group in sure:
            assert group.apart is not None
            less = "less" if group.apart.mean < 0 else "more"
            low, high = sorted(map(abs, group.apart[1:]))
            found.append(
                f"{quoted(group.name)} gains {number(abs(group.apart.mean))} {less} from the advice than "
                f"{quoted(first.name)} does ({between(low, high)})."
            )
        if not sure and any(group.apart is not None for group in others):
            found.append(f"No group clearly gains more or less from the advice than {quoted(first.name)} does.")
        if self.untold:
            found.append("What a group gains is not given: people acted on more than the states hold.")
        return found

    def _line(self, group: OneGroup) -> str:
        of = "" if group.episodes is None else f" in {several(group.episodes, 'episode')}"
        said = f"{quoted(group.name)}: {several(group.rows, 'decision')}{of}"
        if group.agreement is not None:
            rate, low, high = group.agreement
            said += f", {percent(rate)} of them as advised ({percent(low)} to {percent(high)})"
        said += f"; {percent(group.supported)} in states where the advised action was tried {FEW} times in the group"
        if group.gain is not None:
            gain = group.gain
            said += f"; the advice gains {number(gain.mean)} ({between(gain.low, gain.high)})"
        return f"{said}."

    def alerts(self) -> list[str]:
        """Groups about which little is known, or whom the advice likely harms."""
        little = [quoted(group.name) for group in self.groups if group.little]
        found = []
        if little:
            found.append(
                f"By {quoted(self.by)}, {several(len(little), 'group has', 'groups have')} little support: "
                f"{', '.join(little)}. The advice there rests on others."
            )
        for group in self.groups:
            if group.gain is not None and group.gain.better < HALF:
                found.append(
                    f"For {quoted(group.name)} ({quoted(self.by)}) the advice is more likely worse than what was done: "
                    f"the chance that it is better is only {in_a_sentence(percent(group.gain.better, self.draws))}."
                )
        return found

    def to_json(self) -> dict[str, Any]:
        """Write it as plain values."""
        return {
            "format": "certeq-groups",
            "version": 1,
            "by": self.by,
            "draws": self.draws,
            "reference": self.groups[0].name,
            "groups": [
                {name: part._asdict() if hasattr(part, "_asdict") else part for name, part in group._asdict().items()}
                | {"little_support": group.little}
                for group in self.groups
            ],
            "words": self.lines(),
        }


def groups(learned: Learned, *, draws: int = DRAWS, rng: Rng = 0, too_much: float = 0.0) -> Groups:
    """Tell groups apart, as ``certeq.read(..., by=COLUMN)`` read them.

    Parameters
    ----------
    learned
        What `certeq.learn` returned for rows with groups.
    draws, rng
        Models that are drawn for each group, 0 for none, and the seed.
    too_much
        What advice promises too much; `Posterior.too_much` of everybody's rows tells.
    """
    case = asked(learned)
    batch = case.data.rows("Groups are told apart by rows")
    if batch.group is None or batch.by is None:
        raise InputError("No groups were named. Say by= when the rows are read (--by COLUMN).")
    often = np.bincount(batch.group, minlength=len(batch.group_names))
    order = [g for g in np.argsort(-often, kind="stable").tolist() if often[g]]
    advised = _advised(learned, batch)
    random = generator(rng).spawn(len(order))
    plain = [_counted(batch, batch.group == g, advised, batch.group_names[g]) for g in order]
    if not draws:
        return Groups(batch.by, tuple(_compared(plain, [None] * len(plain))), 0)
    values = [
        None if group.little else _values(learned, batch, g, draws, seed)
        for group, g, seed in zip(plain, order, random, strict=True)
    ]
    people = bool(learned.summary.people)
    gains = [None if value is None or people else value[0] - value[1] for value in values]
    each = each_drawn(learned.counts, draws)
    valued = [
        group._replace(
            value=None if value is None else credible(value[0], lower=too_much),
            gain=None if gain is None else gained(gain, too_much, each=each),
        )
        for group, value, gain in zip(plain, values, gains, strict=True)
    ]
    return Groups(batch.by, tuple(_compared(valued, gains)), draws, people)


def _advised(learned: Learned, batch: Batch) -> Integers:
    """The advice on each row, ``(n,)``; -1 where there is none, `LATE` where nothing was planned any more."""
    actions = learned.policy.actions
    if actions.ndim == 1:
        return np.asarray(actions[batch.state])
    if batch.time is None:
        return np.asarray(actions[0][batch.state])
    late = batch.time >= len(actions)
    return np.where(late, LATE, actions[np.where(late, 0, batch.time), batch.state])


def _counted(batch: Batch, mine: Booleans, advised: Integers, name: str) -> OneGroup:
    """What counting tells of a group."""
    state, action, advice = batch.state[mine], batch.action[mine], advised[mine]
    S, A = batch.n_states, batch.n_actions
    tried = np.bincount(state * A + action, minlength=S * A).reshape(S, A)
    there = advice >= 0
    enough = there & (tried[state, np.maximum(advice, 0)] >= FEW)
    supported = float(enough.sum() / max((advice != LATE).sum(), 1))
    episode = None if batch.episode is None else batch.episode[mine]
    unit = np.arange(len(state)) if episode is None else np.unique(episode, return_inverse=True)[1]
    agreement = _agreement((action == advice)[there], unit[there]) if there.any() else None
    return OneGroup(name, len(state), None if episode is None else int(unit.max()) + 1, supported, agreement)


def _agreement(same: Booleans, unit: Integers) -> tuple[float, float, float]:
    """How often rows are as advised, with Wilson's 90% interval for as many rows as there are in effect.

    Rows of an episode are alike, so that n of them tell less: n is divided by how much larger the variance of the share
    is, taken over episodes, than over rows; where all rows are alike, by the mean length of an episode.
    """
    rate, n = float(same.mean()), len(same)
    each, size = np.bincount(unit, same), np.bincount(unit)
    units = int((size > 0).sum())
    plain = rate * (1 - rate) / n
    spread = float(((each - rate * size) ** 2).sum()) / n**2 * units / max(units - 1, 1)
    size_in_effect = n / max(1.0, spread / plain) if plain else float(units)
    middle_of = (rate + Z**2 / (2 * size_in_effect)) / (1 + Z**2 / size_in_effect)
    half = (
        np.sqrt(rate * (1 - rate) / size_in_effect + Z**2 / (4 * size_in_effect**2)) * Z / (1 + Z**2 / size_in_effect)
    )
    return rate, max(0.0, float(middle_of - half)), min(1.0, float(middle_of + half))


def _values(learned: Learned, batch: Batch, group: int, draws: int, rng: Rng) -> Floats:
    """Values of the advice and of what was done in a group, in models drawn from its own rows, ``(2, draws)``."""
    case, mine = learned.case, np.asarray(batch.group == group)
    once, part = mine.astype(np.int64), batch.take(mine)
    counts = count_again(batch, once, case.data.counts)
    reward = add_up(batch, once) if isinstance(case.data.reward, Sums) else case.data.reward
    own = Case(replace(case.data, counts=counts, reward=reward, batch=part), case.rules)
    over = watched(batch, case.rules.discount)
    policies = (learned.policy.actions, behavior(counts))
    return drawn_values(own, policies, draws=draws, rng=rng, watched=over)


def _compared(found: list[OneGroup], gains: list[Floats | None]) -> list[OneGroup]:
    """Each group beside the first one."""
    first, compared = found[0], [found[0]]
    for group, gain in zip(found[1:], gains[1:], strict=True):
        apart = None if gain is None or gains[0] is None else credible(gain - gains[0])
        compared.append(group._replace(apart=apart, agrees_more=_more(group.agreement, first.agreement)))
    return compared


def _more(
    one: tuple[float, float, float] | None, other: tuple[float, float, float] | None
) -> tuple[float, float, float] | None:
    """Difference of two shares, with the interval that theirs make (Newcombe)."""
    if one is None or other is None:
        return None
    apart = one[0] - other[0]
    low = apart - np.hypot(one[0] - one[1], other[2] - other[0])
    high = apart + np.hypot(one[2] - one[0], other[0] - other[1])
    return apart, float(low), float(high)


def _ask(asking: Asking) -> Groups:
    draws = 0 if asking.draws == 0 else min(DRAWS, affordable_draws(asking.learned, asking.draws))
    whole = asking.found.get("posterior")
    return groups(asking.learned, draws=draws, rng=asking.rng, too_much=0.0 if whole is None else whole.too_much)


ASKED = Question(
    "groups",
    _ask,
    doing="Looking at each group",
    asks="how groups fare",
    applies=lambda learned: learned.batch is not None and learned.batch.group is not None,
    after=("posterior",),
)
