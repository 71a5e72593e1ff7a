"""Findings: everything that can be said about a learned policy, gathered once, so that a report only has to read.

Each part may be missing: too large, not asked for, or not to be had from this data. Then the reason is kept instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from certeq.base.arrays import Booleans, Floats, Integers, Rng
from certeq.base.errors import InputError
from certeq.learning.learned import Learned, asked
from certeq.questions.audit import Audit, audit
from certeq.questions.collect import Ranking, collect_next
from certeq.questions.comparison import Comparison
from certeq.questions.conventions import Conventions, compare_conventions
from certeq.questions.episodes import behavior
from certeq.questions.fragility import Fragility, fragility
from certeq.questions.off_policy import OffPolicy, off_policy
from certeq.questions.path import Path, path
from certeq.questions.posterior import Posterior, posterior

ADVICE, RECORDED, PLAIN = "the advice", "what was recorded", "without regularization"
WORK = 5e10  # plans times the effort of each that a part of a report may take: about ten seconds
DRAWS, FEWEST = 1000, 40  # models drawn from the posterior where that is not much work, and at least
AGAIN = 200  # times that the episodes are drawn again for intervals of off-policy estimates
COLLECT_DRAWS = 40  # from the posterior, to rank what to collect next
ASKED, CAP = 60, 100  # states that are asked what would change their advice, and where counting stops
WITHIN = 1e-6  # breakpoints of a path are known to lie in intervals so wide
EACH = 25  # plans that it takes to ask a state
PLANS = {"path": 250, "audit": 9, "conventions": 6, "fragility": 300, "collect": 6 * COLLECT_DRAWS}  # about so many
SURE = ("plain", "posterior", "off_policy")  # asked in this order; the others need none of them
SPARSE = 500_000  # pairs of a sparse model, above which it is planned in once
Notice = Callable[[str], None]


@dataclass(frozen=True)
class Findings:
    """A learned policy, from rows or from counts of them, and what was found out about it."""

    learned: Learned
    plain: Integers | None = None  # (S,): what would be advised without regularization
    posterior: Posterior | None = None
    audit: Audit | None = None
    path: Path | None = None
    fragility: Fragility | None = None
    conventions: Conventions | None = None
    off_policy: OffPolicy | None = None
    collect: Ranking | None = None
    comparison: Comparison | None = None  # with other regularizers, if they were compared
    missing: Mapping[str, str] = field(default_factory=dict)  # name of a part -> why it is not here

    @property
    def advised(self) -> Integers:
        """The advice, ``(S,)``, at the first decision where there are several; -1 for none."""
        return np.asarray(np.atleast_2d(self.learned.policy.actions)[0])

    @property
    def support(self) -> Integers:
        """How often the advised action was tried, ``(S,)``; 0 where there is no advice."""
        visits = self.learned.policy.visits
        return np.where(self.advised >= 0, visits[np.arange(len(visits)), np.maximum(self.advised, 0)], 0)

    @cached_property
    def runner_up(self) -> tuple[Integers, Floats]:
        """Second-best action of each state, -1 for none, and how much less it is worth, both ``(S,)``."""
        runner, gap = self.learned.policy.runner_up()
        return np.atleast_2d(runner)[0], np.atleast_2d(gap)[0]

    @property
    def choice(self) -> Booleans:
        """Where something else may be advised as well, ``(S,)``."""
        return np.asarray(self.runner_up[0] >= 0)

    @property
    def now(self) -> Floats:
        """How much more the advised action earns at once than the runner-up, ``(S,)``."""
        runner, _ = self.runner_up
        state = np.arange(len(runner))
        more = self.learned.reward[state, self.advised] - self.learned.reward[state, runner]
        return np.where(runner >= 0, more, np.nan)

    @property
    def later(self) -> Floats:
        """How much more the states are worth that the advised action leads to, discounted, ``(S,)``."""
        return np.asarray(self.runner_up[1] - self.now)


def drift(learned: Learned) -> Floats:
    """Where the advised action leads on average, in cells along each column, ``(S, columns)``; 0 where it ends."""
    cells, model = learned.policy.recipe.cells, learned.model.transition
    state, action = np.arange(len(cells)), np.maximum(np.atleast_2d(learned.policy.actions)[0], 0)
    mass = model.mass()[state, action][:, None]
    ahead = np.stack([model.expect(code.astype(np.float64))[state, action] for code in cells.T], axis=1)
    return np.where(mass > 0, ahead / np.maximum(mass, 1e-300) - cells, 0.0)


def examine(
    learned: Learned,
    *,
    draws: int | None = None,
    rng: Rng = 0,
    planning_discount: float | None = None,
    comparison: Comparison | None = None,
    notice: Notice = lambda part: None,
    executor: Executor | None = None,
) -> Findings:
    """Ask all questions of a learned policy.

    Parameters
    ----------
    learned
        What `certeq.learn` returned; of counts alone less can be said.
    draws, rng
        How many models are drawn from the posterior, 0 for none, and the seed: 1,000 unless said, and fewer where
        the model is large.
    planning_discount
        The one that is audited: 0.9 unless said, or nine tenths of a smaller discount.
    comparison
        What `certeq.questions.compare.compare` found on the same data, if it was asked.
    notice
        Called with the name of each part before it is begun; two are asked at a time, so not always from this thread.
    executor
        Where models are drawn from the posterior; threads of this process unless given. No rows are sent there.
    """
    gamma = asked(learned).rules.discount
    lower = (0.9 if gamma > 0.9 else 0.9 * gamma) if planning_discount is None else planning_discount
    found: dict[str, Any] = {}
    missing: dict[str, str] = {}
    questions: dict[str, Callable[[], Any]] = {
        "plain": lambda: learned.case.under("none").advise().policy,
        "posterior": lambda: _posterior(learned, found.get("plain"), draws, rng, executor),
        "off_policy": lambda: _off_policy(learned, found.get("posterior"), rng),
        "audit": lambda: audit(learned, lower),
        "path": lambda: path(learned, "planning_discount", tolerance=WITHIN),
        "fragility": lambda: _fragility(learned),
        "conventions": lambda: compare_conventions(learned),
        "collect": lambda: _collect(learned, draws, rng),
    }

    def ask(names: list[str]) -> None:
        while names:
            name = names.pop(0)
            notice(name)
            try:
                _check_work(learned, name)
                found[name] = questions[name]()
            except InputError as error:
                missing[name] = str(error)

    rest = [name for name in questions if name not in SURE]
    with ThreadPoolExecutor(1) as other:  # posterior draws keep all processors busy, most other questions only one
        others = other.submit(ask, rest)
        try:
            ask(list(SURE))
        except BaseException:
            rest.clear()  # nobody waits for the answers any more
            raise
        others.result()
    missing = {name: missing[name] for name in questions if name in missing}
    return Findings(learned, comparison=comparison, missing=missing, **found)


def _effort(learned: Learned) -> float:
    """About how many steps of arithmetic one plan takes: a linear system of S equations, and S * A rows."""
    S, A = learned.policy.visits.shape
    return float(S * S * (S + 30 * A))


def _check_work(learned: Learned, part: str) -> None:
    """Raise if a part would take much longer than somebody waits for a report."""
    S, A = learned.policy.visits.shape
    sparse = learned.counts.sparse and part in ("audit", "conventions")  # planned in without writing the rows out
    if S * A > SPARSE if sparse else PLANS.get(part, 0) * _effort(learned) > WORK:
        raise InputError(f"For {S:,} states and {A:,} actions this takes too long for a report; ask for it by itself.")


def _draws(learned: Learned, draws: int | None) -> int:
    """How many models to draw."""
    if draws == 0:
        raise InputError("No draws from the posterior were asked for.")
    affordable = min(DRAWS, int(WORK / _effort(learned))) if draws is None else draws
    if draws is None and affordable < FEWEST:
        S, A = learned.policy.visits.shape
        raise InputError(
            f"Drawing models of {S:,} states and {A:,} actions from the posterior takes long, so it is only done where "
            "the number of draws is said (draws=, --draws)."
        )
    return affordable


def _posterior(
    learned: Learned, plain: Integers | None, draws: int | None, rng: Rng, executor: Executor | None
) -> Posterior:
    rules = learned.rules
    policies: dict[str, Any] = {ADVICE: learned.policy.actions, RECORDED: behavior(learned.counts)}
    if rules.regularizer != "none" and plain is not None:
        policies[PLAIN] = plain
    return posterior(
        learned.model,
        learned.table,
        rules.discount,
        policies,
        rewards=learned.rewards,
        batch=learned.batch,
        draws=_draws(learned, draws),
        rng=rng,
        horizon=rules.horizon,
        executor=executor,
    )


def _off_policy(learned: Learned, model: Posterior | None, rng: Rng) -> OffPolicy:
    return off_policy(
        learned.case.data.rows("This part values the advice by whole episodes"),
        learned.policy.actions,
        learned.rules.discount,
        reward=None if learned.rewards is not None else learned.table,
        horizon=learned.rules.horizon,
        model_value=None if model is None else model.interval(ADVICE),
        bootstrap=AGAIN,
        rng=rng,
    )


def _collect(learned: Learned, draws: int | None, rng: Rng) -> Ranking:
    if draws == 0:
        raise InputError("No draws from the posterior were asked for.")
    return collect_next(learned, draws=COLLECT_DRAWS, rng=rng)


def _fragility(learned: Learned) -> Fragility:
    """Ask the most visited of the states that have something else to advise, as many as there is time for."""
    open_to = np.atleast_2d(learned.policy.runner_up()[0])[0] >= 0
    order = np.argsort(-learned.policy.visits.sum(axis=1), kind="stable")
    most = int(min(WORK / (EACH * _effort(learned)), ASKED))
    along = path(learned, tolerance=WITHIN)
    return fragility(learned, states=order[open_to[order]][:most].tolist(), cap=CAP, along=along)
