"""Messy tables with a known truth: a clinic, an app and a machine, logged as such places log.

Each is a small simulator and the table that somebody would export from it: dates, ids, blanks, columns that tell
nothing and columns that tell too much. The columns that matter are among them, nothing says which, and outcomes may
stand on last rows only. `Messy.value` says what a policy is worth, in the simulator and on new cases.

- ``clinic``: stays in a hospital, three visits a day. Pressure falls and lactate rises as patients get worse; fluids
  help dry patients and harm others, a pressor helps where pressure is low. What counts stands on the last row of a
  stay: discharge or death. Nurses treat by lactate, with habits.
- ``app``: users who open an app or do not. A nudge brings tired users back for a day and wears out trust; rest restores
  it. After a user is gone, the export may have an empty day.
- ``machine``: a press that wears, faster when hot. Running fast earns more and heats; a service costs and lowers wear;
  a breakdown costs dearly and ends the run. Costs are logged, not rewards.

``KNOWING`` are tables of people who knew more than they wrote down, from which nobody can learn to do better:

- ``school``: pupils who are helped as their teachers know they need it, lesson after lesson. The log has a score of
  what they know, with noise. Too much help, or too little, sets them back a little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from certeq.base.arrays import Floats, Integers

Logged = dict[str, Any]
NAMED = ("episode", "time", "action", "reward", "cost", "missing")
Point = Mapping[str, Floats]  # the columns that matter, one entry for each case


@dataclass(frozen=True)
class Messy:
    """A simulator, how it is logged, and the words of the command line that say which column is what."""

    actions: tuple[str, ...]
    start: Callable[[int, np.random.Generator], dict[str, Floats]]
    step: Callable[[Point, Integers, np.random.Generator], tuple[dict[str, Floats], Floats, Any]]  # next, reward, ended
    behavior: Callable[[Point, np.random.Generator], Integers]
    export: Callable[[Logged, np.random.Generator], Logged]  # the rows of all cases as somebody would write them
    length: int  # rows of a case at most
    cases: int
    discount: float
    options: tuple[str, ...]

    @property
    def said(self) -> dict[str, Any]:
        """The same words as keywords of `certeq.read`."""
        pairs = dict(zip(self.options[::2], self.options[1::2], strict=True))
        column, marked, words = pairs["--done"].partition("=")
        found = {"done": {column: words.split(",")} if marked else column}
        return found | {name: pairs[f"--{name}"] for name in NAMED if f"--{name}" in pairs}

    def table(self, seed: int, cases: int | None = None) -> Logged:
        """A table of logged decisions: columns by name."""
        random = np.random.default_rng(seed)
        n = self.cases if cases is None else cases
        now, there, rows = self.start(n, random), np.ones(n, dtype=bool), []
        for time in range(self.length):
            action = self.behavior(now, random)
            after, reward, ended = self.step(now, action, random)
            told = {"case": np.arange(n), "step": np.full(n, time), "ended": ended, "action": action, "reward": reward}
            rows.append({name: values[there] for name, values in (told | dict(now)).items()})
            there &= ~ended
            now = after
        joined = {name: np.concatenate([part[name] for part in rows]) for name in rows[0]}
        order = np.lexsort((joined["step"], joined["case"]))
        return self.export({name: values[order] for name, values in joined.items()}, random)

    def value(self, policy: Any, *, cases: int = 4000, seed: int = 77) -> float:
        """What following a policy is worth to new cases; where it is silent, people do what they did. None: always."""
        random = np.random.default_rng(seed)
        now, there, total = self.start(cases, random), np.ones(cases, dtype=bool), 0.0
        for time in range(self.length):
            action = self.behavior(now, random)
            if policy is not None:
                seen = self.export(_as_rows(now, time), np.random.default_rng(0))
                advised = policy.apply(seen).action
                names = np.array([*(self.actions.index(name) for name in policy.action_names), -1])
                action = np.where(advised >= 0, names[advised], action)
            now, reward, ended = self.step(now, action, random)
            total += self.discount**time * float((reward * there).mean())
            there &= ~np.asarray(ended)
        return total


def _as_rows(now: Point, time: int) -> Logged:
    n = len(next(iter(now.values())))
    plain = {"case": np.arange(n), "step": np.full(n, time), "ended": np.zeros(n, dtype=bool)}
    return plain | {"action": np.zeros(n, dtype=int), "reward": np.zeros(n)} | dict(now)


def blanks(values: Any, share: float, random: np.random.Generator) -> list[Any]:
    """The values with some of them missing."""
    gone = random.random(len(values)) < share
    return [None if gap else value for value, gap in zip(np.asarray(values).tolist(), gone, strict=True)]


def _labels(case: Integers, names: tuple[str, ...], salt: int) -> list[str]:
    """A label for each case that tells nothing."""
    return [names[(int(c) * 7919 + salt) % len(names)] for c in case]


# ---- the clinic ----


def _admitted(n: int, random: np.random.Generator) -> dict[str, Floats]:
    sick = random.beta(2, 3, n)
    return {
        "sbp": 130 - 50 * sick + 8 * random.standard_normal(n),
        "lactate": 1 + 4 * sick + 0.5 * random.standard_normal(n),
        "age": random.uniform(25, 90, n),
    }


def _treated(now: Point, action: Integers, random: np.random.Generator) -> tuple[dict[str, Floats], Floats, Any]:
    sbp, lactate, age = now["sbp"], now["lactate"], now["age"]
    n = len(sbp)
    dry = (lactate > 2.5) & (sbp < 115)
    help_ = np.select([action == 1, action == 2], [np.where(dry, 9.0, -4.0), np.where(sbp < 95, 12.0, -6.0)], 0.0)
    drift = np.where(lactate > 3, -3.0, 1.5)
    after = sbp + drift + help_ + 5 * random.standard_normal(n)
    good = (after > 100) & (after < 150)
    acid = np.maximum(lactate + np.where(good, -0.45, 0.35) + 0.25 * random.standard_normal(n), 0.4)
    risk = 1 / (1 + np.exp(-(-4.2 + 0.6 * (acid - 2) + 0.08 * np.maximum(95 - after, 0) + 0.02 * (age - 60))))
    home = 1 / (1 + np.exp(-(-2.4 - 1.2 * (acid - 2) - 0.08 * np.maximum(100 - after, 0))))
    luck = random.random(n)
    died = luck < risk
    ended = died | (luck > 1 - home)
    return {"sbp": after, "lactate": acid, "age": age}, np.where(ended & ~died, 1.0, 0.0), ended


def _nurse(now: Point, random: np.random.Generator) -> Integers:
    usual = np.where(now["lactate"] > 3, 1, 0)  # the pressor is a habit of some, whatever the pressure
    return np.where(random.random(len(usual)) < 0.5, random.integers(3, size=len(usual)), usual)


def _chart(rows: Logged, random: np.random.Generator) -> Logged:
    case, step = rows["case"], rows["step"]
    last = rows["ended"]
    hours = case % 4000 * 24 + step * 8
    when = (np.datetime64("2023-01-01T06", "h") + hours.astype("timedelta64[h]")).astype(str)
    died = last & (rows["reward"] == 0)
    totals = np.bincount(case, minlength=case.max() + 1)[case]
    n = len(case)
    return {
        "stay": [f"S{100_000 + c}" for c in case],
        "charted": when.tolist(),
        "ward": _labels(case, ("north", "south", "west"), 3),
        "age": np.round(rows["age"]).astype(int).tolist(),
        "sbp": blanks(np.round(rows["sbp"]), 0.04, random),
        "heart_rate": blanks(np.round(80 + 12 * random.standard_normal(n)), 0.1, random),
        "lactate": blanks(np.round(rows["lactate"], 1), 0.12, random),
        "bed": (case % 40).tolist(),
        "treatment": np.array(["nothing", "fluids", "pressor"])[rows["action"]].tolist(),
        "survived": rows["reward"].astype(int).tolist(),
        "outcome": np.where(died, "death", np.where(last, "discharge", "")).tolist(),
        "nights_in_all": (totals // 3 + 1).tolist(),
    }


CLINIC = Messy(
    actions=("nothing", "fluids", "pressor"),
    start=_admitted,
    step=_treated,
    behavior=_nurse,
    export=_chart,
    length=40,
    cases=3000,
    discount=0.99,
    options=(
        *("--episode", "stay", "--time", "charted", "--action", "treatment", "--reward", "survived"),
        *("--done", "outcome=death,discharge", "--missing", "last"),
    ),
)


# ---- the app ----


def _joined(n: int, random: np.random.Generator) -> dict[str, Floats]:
    return {"energy": random.uniform(0.2, 1, n), "trust": random.uniform(0.4, 1, n)}


def _day(now: Point, action: Integers, random: np.random.Generator) -> tuple[dict[str, Floats], Floats, Any]:
    energy, trust = now["energy"], now["trust"]
    n = len(energy)
    nudged = action == 1
    reached = nudged & (random.random(n) < trust)
    used = random.random(n) < np.clip(0.1 + 0.6 * energy + np.where(reached, 0.35, 0), 0, 1)
    minutes = np.where(used, 6 + 14 * energy + 3 * random.standard_normal(n), 0).clip(0)
    rested = np.where(used, energy - 0.25, energy + 0.2)
    bonus = action == 2  # a small gift: it costs, and restores trust
    trusting = trust + np.where(nudged, -0.14, 0.03) + np.where(bonus, 0.15, 0)
    noise = random.standard_normal((2, n))
    after = {
        "energy": np.clip(rested + 0.05 * noise[0], 0, 1),
        "trust": np.clip(trusting + 0.03 * noise[1], 0, 1),
    }
    leaves = random.random(n) < 0.01 + 0.25 * np.maximum(0.35 - after["trust"], 0)
    return after, minutes - 2.0 * bonus, leaves


def _campaign(now: Point, random: np.random.Generator) -> Integers:
    n = len(now["energy"])
    return np.where(random.random(n) < 0.4, random.integers(3, size=n), (now["energy"] < 0.4).astype(int))


def _events(rows: Logged, random: np.random.Generator) -> Logged:
    case, step, n = rows["case"], rows["step"], len(rows["case"])
    out = {
        "user": case,
        "day": step,
        "platform": np.array(_labels(case, ("ios", "android", "web"), 1)),
        "energy": np.round(rows["energy"], 3),
        "trust": np.round(rows["trust"], 3),
        "battery": random.integers(5, 101, n),
        "version": np.array(_labels(case, ("4.1", "4.2"), 5)),
        "shown": np.array([0, 1, 2])[rows["action"]],
        "minutes": np.round(rows["reward"], 2),
        "gone": rows["ended"].astype(int),
    }
    gone = np.flatnonzero(rows["ended"] & (case % 3 == 0))  # of some users the export has an empty day after the last
    pad = {name: values[gone] for name, values in out.items()}
    pad |= {"day": pad["day"] + 1, "shown": np.full(len(gone), -1), "minutes": np.zeros(len(gone))}
    joined = {name: np.concatenate([values, pad[name]]) for name, values in out.items()}
    order = np.lexsort((joined["day"], joined["user"])) if len(gone) else np.arange(n)
    return {name: values[order].tolist() for name, values in joined.items()}


APP = Messy(
    actions=("0", "1", "2"),
    start=_joined,
    step=_day,
    behavior=_campaign,
    export=_events,
    length=30,
    cases=2500,
    discount=0.95,
    options=(
        *("--episode", "user", "--time", "day", "--action", "shown", "--reward", "minutes", "--done", "gone"),
        *("--discount", "0.95"),
    ),
)


# ---- the machine ----


def _new(n: int, random: np.random.Generator) -> dict[str, Floats]:
    return {"wear": random.uniform(0, 0.4, n), "heat": random.uniform(20, 50, n)}


def _shift(now: Point, action: Integers, random: np.random.Generator) -> tuple[dict[str, Floats], Floats, Any]:
    wear, heat = now["wear"], now["heat"]
    n = len(wear)
    fast, service = action == 1, action == 2
    earned = np.where(service, -6.0, np.where(fast, 5.0, 3.0) * (1 - 0.3 * wear))
    more = np.where(service, -0.7, np.where(fast, 0.05, 0.02) * (1 + (heat > 70) * 2)) + 0.02 * random.standard_normal(
        n
    )
    after = np.clip(wear + more, 0, 1)
    warm = np.clip(heat + np.where(service, -25, np.where(fast, 6, -4)) + 3 * random.standard_normal(n), 15, 110)
    broke = random.random(n) < 0.002 + 0.35 * np.maximum(after - 0.55, 0) ** 1.5
    return {"wear": after, "heat": warm}, earned - 40.0 * broke, broke


def _shop(now: Point, random: np.random.Generator) -> Integers:
    usual = np.select([now["wear"] > 0.75, now["heat"] > 85], [2, 0], 1)
    return np.where(random.random(len(usual)) < 0.3, random.integers(3, size=len(usual)), usual)


def _log(rows: Logged, random: np.random.Generator) -> Logged:
    case, step, n = rows["case"], rows["step"], len(rows["case"])
    day = np.datetime64("2022-03-01") + (case % 300 * 2 + step).astype("timedelta64[D]")
    return {
        "run_id": (90_000 + case).tolist(),
        "date": day.astype(str).tolist(),
        "press": _labels(case, ("P1", "P2", "P3", "P4"), 2),
        "vibration_mm_s": np.round(1 + 6 * rows["wear"] + 0.2 * random.standard_normal(n), 2).tolist(),
        "temperature_c": blanks(np.round(rows["heat"], 1), 0.03, random),
        "humidity": np.round(random.uniform(30, 60, n), 1).tolist(),
        "operator": _labels(case * 31 + step, ("ann", "bob", "cyd", "dan", "eve"), 4),
        "firmware": ["2.0"] * n,
        "mode": np.array(["slow", "fast", "service"])[rows["action"]].tolist(),
        "cost": np.round(-rows["reward"], 2).tolist(),
        "broke_down": rows["ended"].astype(int).tolist(),
    }


MACHINE = Messy(
    actions=("slow", "fast", "service"),
    start=_new,
    step=_shift,
    behavior=_shop,
    export=_log,
    length=40,
    cases=300,
    discount=0.97,
    options=(
        *("--episode", "run_id", "--time", "date", "--action", "mode", "--cost", "cost", "--done", "broke_down"),
        *("--discount", "0.97", "--missing", "last"),
    ),
)

# ---- the school ----


def _enrolled(n: int, random: np.random.Generator) -> dict[str, Floats]:
    return {"skill": random.random(n)}


def _lesson(now: Point, action: Integers, random: np.random.Generator) -> tuple[dict[str, Floats], Floats, Any]:
    skill, n = now["skill"], len(now["skill"])
    gain = np.where(action == _needed(skill), 5.0, -1.0) + 3 * random.standard_normal(n)
    return {"skill": np.clip(skill + 0.01 * gain - 0.02, 0, 1)}, gain, random.random(n) < 0.02


def _needed(skill: Floats) -> Integers:
    return (skill < 0.7).astype(int) + (skill < 0.35)


def _teacher(now: Point, random: np.random.Generator) -> Integers:
    n = len(now["skill"])
    return np.where(random.random(n) < 0.15, random.integers(3, size=n), _needed(now["skill"]))


def _register(rows: Logged, random: np.random.Generator) -> Logged:
    n = len(rows["case"])
    return {
        "pupil": rows["case"].tolist(),
        "lesson": rows["step"].tolist(),
        "score": np.round(100 * (rows["skill"] + 0.1 * random.standard_normal(n)), 1).tolist(),
        "minutes": np.round(random.uniform(20, 40, n)).tolist(),
        "help": np.array(["none", "hint", "example"])[rows["action"]].tolist(),
        "gain": np.round(rows["reward"], 1).tolist(),
        "left": rows["ended"].astype(int).tolist(),
    }


SCHOOL = Messy(
    actions=("none", "hint", "example"),
    start=_enrolled,
    step=_lesson,
    behavior=_teacher,
    export=_register,
    length=25,
    cases=300,
    discount=0.95,
    options=(
        *("--episode", "pupil", "--time", "lesson", "--action", "help", "--reward", "gain", "--done", "left"),
        *("--discount", "0.95"),
    ),
)

MESSY = {"clinic": CLINIC, "app": APP, "machine": MACHINE}
KNOWING = {"school": SCHOOL}
