"""Make docs/outside.md from what the contests of benchmarks/outside kept: ``python docs/make_outside.py``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path.insert(0, str(ROOT))

from benchmarks.outside.contest import OURS as OURS_TOO  # noqa: E402
from benchmarks.outside.contest import score  # noqa: E402  (benchmarks lies beside the package, not in it)

OURS = "certeq, default"
UNTUNED = {*OURS_TOO, "what was done most"}
CLEARLY = 2.0  # standard errors of a paired difference
PLACE = "outside.md"
Record = dict[str, Any]

HEAD = """\
<!-- made by docs/make_outside.py; edit that, or run a contest of benchmarks/outside again -->

# Proof from outside

Worlds, logs and methods that others made. Every number on this page is read from the files in
`benchmarks/outside/results`; the commands that made those files stand beside the tables. certeq is always used as it
comes: rows in, `certeq.learn` with its defaults, nothing tuned for a world. Methods of others that have a constant
are **tuned by an oracle**: of several constants they get the one with the best mean *in the truth*, on data sets of
the same size drawn with another seed. Nobody with a log alone could choose so well. So are the two global
regularizers, a lower discount and a uniform prior. No constant was chosen on the data sets that are judged. All act
at random in states that were never seen.

Not everything here is new to certeq: the share of tries below which an action is not advised was once chosen on other
logs of FrozenLake and of the slippery cliff ([decision 15](decisions/0015-avoided-actions.md)), and earlier versions
of the default, which did worse, had been tried on ICU-Sepsis. Earlier runs of all contests, with seeds 2 and 31, showed
where the rule about what people avoided was wrong: in the wet chicken, on the 8×8 lake, and beside networks on logs of
numbers that competent people left. Each time it was changed on other seeds. The data sets of ICU-Sepsis, Gymnasium's
tables and safe policy improvement, of seed 37, were drawn afterwards and looked at once. One rule was added since: what
all states together show may be advised. It is not asked with as many states as ICU-Sepsis has, and changed advice in 6
of 380 other logs of such worlds ([decision 15](decisions/0015-avoided-actions.md)), so these contests were not held
again. Safe policy improvement was begun twice; the first run was stopped for another trial on other data, before any
value of it was seen. Networks and off-policy evaluation are of seed 43, drawn and looked at once after the choice of
cells and the intervals had changed again ([decision 18](decisions/0018-cells.md),
[decision 19](decisions/0019-sure-means-sure.md)), and before that rule. How much proof is asked of
what people seldom did has changed as well since all of these, on other logs (decision 15).
"""

ICU = """\
## ICU-Sepsis

A sepsis simulator made from the records of intensive care ([Choudhary, Gupta and Thomas
2024](https://github.com/icu-sepsis/icu-sepsis)): 713 states, 25 actions. The package's own clinicians treat 100 to
50,000 patients; rows are the usual ones, with reward and `done` on a patient's last row. Advice is learned at
discount .99 and valued exactly in the package's model, from its first states, at .99 and at 1, where the value is the
chance to live. {checked}. Constants were chosen at .99. Soft SPIBB was left out: it takes minutes a data set here.
"""

TABLES = """\
## Gymnasium's tables

FrozenLake, Taxi and CliffWalking, logged at random and by somebody competent, who takes the best action but in one
decision of five any action. Discount .99, exact values from the environment's own start. Sizes are episodes. With few
random episodes nobody reaches the goal, and there is nothing to learn for anybody.

Minari's toy data sets are not here: they are downloaded from Hugging Face, which could not be reached where this was
run.
"""

SPIBB = """\
## The worlds of safe policy improvement

Rebuilt from their papers: random MDPs and the gridworld (Laroche, Trichelair and Tachet des Combes 2019), the wet
chicken (Hans and Udluft 2009, with the baseline of Scholl and others 2022), resource gathering (Barrett and Narayanan
2008, its three rewards added up). As in the papers, SPIBB and its kin are *told* the baseline that logged the data;
certeq sees rows alone. Random MDPs are told as the share of the way from the baseline (0) to the optimum (1).
{checked}; these two are quoted from memory, the paper was not at hand. For the other worlds no published number was
known for certain, and none was checked. Sizes are episodes, for the wet chicken decisions. WSU (Steimle,
Kaufman and Denton 2021) and CADP (Su and Petrik 2023) plan for 30 models at once, drawn from the posterior under a
uniform prior whose mass the oracle chose; they take part where all rows of all models can be written out.
"""

DEEP = "uv run --no-project --with-requirements benchmarks/outside/deep.txt --with-editable ."
OFF_POLICY = """\
## Off-policy evaluation

What a policy would be worth, told from episodes of another one, beside the estimators of SCOPE-RL and offline-rl-ope
on the same rows. Two policies were fixed before any data: a half-and-half mix of what was done and the optimum, and
one that is nine tenths optimum. All are told the true chances of the logged actions; certeq also estimates them,
which is what it does unless told. Those of others that start from action values get the fitted table's, with certeq's
own convention for actions that nobody tried. Where an estimator has the same definition in two of the libraries, its
values agree to four digits. offline-rl-ope has bounds with one end, and no intervals. Nothing was tuned.

Each cell: root mean squared error as a share of the true value, and in brackets how often the 90% interval held the
truth, how wide it was as a share of the true value, and in how many data sets certeq itself calls the estimate one to
trust.
"""

NUMBERS = """\
## Learned by networks: d3rlpy on the worlds of numbers

Points in a square, three simulators of our own ([the study](study.md) has them): logged at random, or by somebody who
takes the best action of a fine table in seven decisions of ten and any action in the rest. certeq reads the table and
cuts the columns by itself; d3rlpy's discrete behavior cloning and CQL get the numbers. Nothing was tuned. d3rlpy's
defaults for CQL are made for millions of frames, so learning rate, batches and target updates ({settings}) were set
beforehand, for {steps} steps; CQL is also valued after a third of them, to see whether more would help. Values are
mean discounted returns in the simulator, the same starts and luck for all, ± standard errors over data sets.
"""

WHY = """\
Why, as far as we know. In the wet chicken the baseline keeps to one plan and errs in one decision of ten, so every
other action was tried once in fifty. certeq reads that as avoided ([decision 15](decisions/0015-avoided-actions.md))
until the action's own rows prove it better; SPIBB trusts an action with three rows. With 5,000 decisions nobody is
better by more than a hundredth of the way; with fewer, proof seems to be there in part or not at all, which was not
counted, while LCB and the plain plan gamble and, on average, win. Their worst data sets are the price: with 200
decisions 21.7 and 20.0, where the default has 28.8. On ICU-Sepsis, on SPIBB's random MDPs and in its gridworld people
do better than chance, are far from the best, and have more than one way: certeq kept to what they were at least half
as likely to do where what they usually do turned out well, and that cost, most of all where data are rich. With a
rule of a fifth (seed 31) it lost .04 of the way to SPIBB with 50,000 patients at discount 1, where it is .11 now; but
beside networks that rule lost the harbor and the dose by far. Where LCB wins on ICU-Sepsis at discount .99, its price
for every uncertain step makes for short stays, and sooner is better; at discount 1 nothing clear is left of it.
"""


def made() -> dict[Path, str]:
    """The page and its text."""
    found = {
        path.stem: json.loads(path.read_text("utf-8")) for path in (ROOT / "benchmarks/outside/results").glob("*.json")
    }
    parts = [HEAD, losses(found)]  # what we lose comes first
    for name, words, worst in (
        ("icu_sepsis", ICU, 0.05),
        ("gymnasium_tables", TABLES, 0.05),
        ("spibb_suite", SPIBB, 0.01),
    ):
        if name in found:
            parts += [
                words.replace("{checked}", _checked(found[name])),
                _about(found[name], worst),
                *tables(found[name], worst),
            ]
    if "off_policy" in found:
        run = found["off_policy"]
        parts += [OFF_POLICY, _how(run, f"{run['sets']} data sets for each number", DEEP), *estimates(run)]
    parts += deep(found["deep"]) if "deep" in found else []
    return {HERE / PLACE: "\n".join(parts).rstrip() + "\n"}


def estimates(run: Record) -> list[str]:
    """One table for each world and policy valued: estimators by numbers of episodes."""
    parts = []
    for world, policy in dict.fromkeys((each["world"], each["policy"]) for each in run["cells"]):
        cells = [each for each in run["cells"] if (each["world"], each["policy"]) == (world, policy)]
        first = cells[0]
        kind = "near to" if policy == "near" else "far from"
        lines = [f"**{world}, a policy {kind} what was done**, worth {number(first['truth'])}", ""]
        lines += ["| estimator | " + " | ".join(f"{each['size']} episodes" for each in cells) + " |"]
        lines += ["|---|" + "---|" * len(cells)]
        for name in first["estimators"]:
            told = (each["estimators"][name] for each in cells)
            lines.append(f"| {name} | {' | '.join(map(estimate, told))} |")
        parts.append("\n".join(lines) + "\n")
    return parts


def deep(run: Record) -> list[str]:
    """The section on policies that networks learned."""
    settings = ", ".join(f"{name.replace('_', ' ')} {each:g}" for name, each in run["settings"].items())
    words = NUMBERS.replace("{settings}", settings).replace("{steps}", f"{run['steps']:,}")
    heads = list(run["cells"][0]["values"])
    lines = ["| world, behavior, episodes | " + " | ".join(heads) + " |", "|---|" + "---|" * len(heads)]
    for each in run["cells"]:
        found = (score(values, 0.0) for values in each["values"].values())
        told = " | ".join(f"{number(one.mean)} ± {number(one.error)}" for one in found)
        lines.append(f"| {each['world']}, {each['behavior']}, {each['size']:,} | {told} |")
    return [words, _how(run, f"{run['sets']} data sets in each line", DEEP), "\n".join(lines) + "\n"]


def estimate(found: dict[str, Any]) -> str:
    """Error, and how often the interval held the truth."""
    if found["covered"] is None:
        return f"{found['error']:.3f} (no interval)"
    trusted = "" if found["trusted"] is None else f"; trusted in {percent(found['trusted'])}"
    return f"{found['error']:.3f} ({percent(found['covered'])}, width {found['width']:.2f}{trusted})"


def thin_intervals(run: Record) -> str:
    """What has to be said first about intervals: where certeq's hold less than they promise."""
    told, lines, trusted = ("certeq, the model itself", "certeq, fitted Q evaluation, behavior estimated"), [], []
    for each in run["cells"]:
        found = [each["estimators"][name] for name in told]
        if min(one["covered"] for one in found) < run["level"] - 0.15:
            said = " and ".join(f"{percent(one['covered'])}" for one in found)
            lines.append(f"{said} ({each['world']}, {each['policy']}, {each['size']} episodes)")
            trusted.append(found[1]["trusted"])
    if not lines:
        return ""
    return (
        "Off-policy evaluation: intervals for a policy that takes what was seldom tried hold the truth less often than "
        f"the 90% they are meant to. By the model itself and by fitted Q evaluation: {', '.join(lines)}. certeq calls "
        f"the latter one to trust there in {_between(min(trusted), max(trusted))} of the data sets.\n"
    )


def _between(low: float, high: float) -> str:
    return percent(low) if low == high else f"{percent(low)} to {percent(high)}"


def smoother(run: Record) -> str:
    """What has to be said first about networks: where they are clearly better than cells."""
    lines, better = [], 0
    for each in run["cells"]:
        found = {name: np.array(values) for name, values in each["values"].items()}
        theirs = {name: values for name, values in found.items() if name.startswith("d3rlpy")}
        best = max(theirs, key=lambda name: theirs[name].mean())
        better += clearly(found[OURS], theirs[best])
        if clearly(theirs[best], found[OURS]):
            told = (
                f"{number(found[OURS].mean())} against {number(theirs[best].mean())} of {best.removeprefix('d3rlpy, ')}"
            )
            lines.append(f"{each['world']}, {each['behavior']}, {each['size']:,} episodes: {told}")
    return (
        f"Networks: on {len(lines)} of {len(run['cells'])} logs of numbers one of d3rlpy's policies is clearly better "
        f"than the default ({'; '.join(lines)}), on {better} the default is clearly better than all of them. Where "
        "competent people acted on numbers, to imitate them smoothly beats to plan in cells, if by little now: cells "
        "are coarser than what they saw.\n"
    )


def _checked(run: Record) -> str:
    return "Checked: " + ", ".join(run.get("checked") or ["nothing"])


def _about(run: Record, worst: float) -> str:
    """What stands above the tables of a contest."""
    tuning, judged = run["sets"]
    fewer = "".join(f", of {name} {few[1]} and {few[0]}" for name, few in run.get("fewer", {}).items())
    return _how(run, f"{judged} data sets of each size judged, {tuning} others for the oracle{fewer}") + (
        f"\nEach cell: mean ± its standard error, and in brackets the mean of the worst {100 * worst:g}% of the data "
        "sets. Bold: the best mean, and what cannot be told from it (within two standard errors of the difference on "
        "the same data sets). Italics: tuned by the oracle, with the constants it chose.\n"
    )


def _how(run: Record, sets: str, bring: str = "uv run --group outside") -> str:
    """Command, data sets, time and versions."""
    versions = ", ".join(f"{name} {said}" for name, said in run["versions"].items())
    minutes = f"{run['seconds'] / 60:.0f} minutes on {run['processors']} shared processors"
    return f"`{bring} {run['command']}`: {sets}; seed {run['seed']}; {minutes}; {versions}.\n"


def tables(run: Record, worst: float) -> list[str]:
    """One table for each world and discount: methods by sizes."""
    worlds = list(dict.fromkeys(held["world"] for held in run["held"]))
    return [
        table([held for held in run["held"] if held["world"] == world], at, worst)
        for world in worlds
        for at in range(len(next(held for held in run["held"] if held["world"] == world)["discounts"]))
    ]


def table(sizes: list[Record], at: int, worst: float) -> str:
    """Methods by sizes, for one world at one discount."""
    first, columns = sizes[0], [values(held, at) for held in sizes]
    marks = ", ".join(f"{name} {number(each[at])}" for name, each in first["landmarks"].items())
    heads = " | ".join(f"{held['size']:,}" for held in sizes)
    lines = [f"**{first['world']}, discount {first['discounts'][at]:g}**: {marks}.", ""]
    lines += [f"| method | {heads} |", "|---|" + "---|" * len(sizes)]
    for method in columns[0]:
        constants = [next(each["constant"] for each in held["judged"] if each["method"] == method) for held in sizes]
        said = f"*{method}* ({', '.join(dict.fromkeys(constants))})" if constants[0] else method
        cells = [
            cell(column, method, held["landmarks"]["behavior"][at], worst)
            for column, held in zip(columns, sizes, strict=True)
        ]
        lines.append(f"| {said} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def values(held: Record, at: int) -> dict[str, np.ndarray]:
    """What every method was worth in each data set."""
    return {each["method"]: np.array([value[at] for value in each["values"]]) for each in held["judged"]}


def cell(column: dict[str, np.ndarray], method: str, behavior: float, worst: float) -> str:
    """Mean, error and worst, bold where nothing is clearly better."""
    found = score(column[method], behavior, worst)
    best = max(column, key=lambda name: column[name].mean())
    mean = f"{number(found.mean)} ± {number(found.error)}"
    return (mean if clearly(column[best], column[method]) else f"**{mean}**") + f" ({number(found.worst)})"


def clearly(better: np.ndarray, than: np.ndarray) -> bool:
    """Whether one is better than the other on the same data sets, by more than chance."""
    gap = better - than
    return bool(gap.mean() > CLEARLY * gap.std(ddof=1) / np.sqrt(len(gap)) and gap.mean() > 1e-9)


def number(value: float) -> str:
    """Digits that matter."""
    return f"{value:.4f}" if abs(value) < 2 else f"{value:.2f}"


class Comparison(NamedTuple):
    """A world, a size and a discount."""

    held: Record
    discount: float
    column: dict[str, np.ndarray]  # what every method was worth in each data set
    way: float  # from what was done to the optimum

    def gap(self, name: str) -> np.ndarray:
        """How much better a method is than the default in each data set, as a share of the way."""
        return (self.column[name] - self.column[OURS]) / self.way


def comparisons(found: dict[str, Record]) -> Iterator[Comparison]:
    """All of them."""
    for held in (each for run in found.values() for each in run.get("held", [])):
        for at, discount in enumerate(held["discounts"]):
            marks = held["landmarks"]
            yield Comparison(held, discount, values(held, at), marks["optimum"][at] - marks["behavior"][at])


def percent(share: float) -> str:
    """A share in whole percent."""
    return f"{100 * share:.0f}%"


def losses(found: dict[str, Record]) -> str:
    """Where the default is clearly beaten, the worst first, and how often it is not."""
    lost, cells = [], 0
    for each in comparisons(found):
        cells += 1
        better = [name for name in each.column if clearly(each.column[name], each.column[OURS])]
        if better:
            lost.append((each, max(better, key=lambda name: each.column[name].mean()), len(better)))
    lost.sort(key=lambda found: -found[0].gap(found[1]).mean())
    lines = [
        "## Where we lose",
        "",
        f"In {len(lost)} of {cells} comparisons (a world, a size, a discount) at least one other method is clearly",
        "better than the default on the same data sets. The largest gaps first, as a share of the way from what was",
        "done to the optimum:",
        "",
        "| world, size | default | best of the others | gap, share of the way | how many are better |",
        "|---|---|---|---|---|",
    ]
    for each, best, many in lost:
        held, gap = each.held, each.gap(best)
        constant = next(other["constant"] for other in held["judged"] if other["method"] == best)
        said = f"*{best}* ({constant})" if constant else best
        where = f"{held['world']}, {held['size']:,}" + (
            f", discount {each.discount:g}" if len(held["discounts"]) > 1 else ""
        )
        mine, theirs = number(each.column[OURS].mean()), number(each.column[best].mean())
        far = f"{gap.mean():.2f} ± {gap.std(ddof=1) / np.sqrt(len(gap)):.2f}"
        lines.append(f"| {where} | {mine} | {said} {theirs} | {far} | {many} of {len(each.column) - 1} |")
    return (
        "\n".join(lines)
        + "\n\n"
        + WHY
        + "\n"
        + (smoother(found["deep"]) + "\n" if "deep" in found else "")
        + (thin_intervals(found["off_policy"]) if "off_policy" in found else "")
        + "\n"
        + overall(found)
    )


def overall(found: dict[str, Record]) -> str:
    """Everybody against the default, over all comparisons in which they take part."""
    against: dict[str, list[tuple[bool, bool, float]]] = {}
    for each in comparisons(found):
        mine = each.column[OURS]
        for name, other in each.column.items():
            if name != OURS:
                told = clearly(other, mine), clearly(mine, other), float(each.gap(name).mean())
                against.setdefault(name, []).append(told)
    means = {name: np.mean([gap for *_, gap in told]) for name, told in against.items()}
    lines = [
        "## Everybody against the default",
        "",
        "In how many comparisons a method is clearly better than the default, clearly worse, or neither; and the mean",
        "gap, as a share of the way from what was done to the optimum. In italics what the oracle tuned, in each",
        "comparison anew.",
        "",
        "| method | better | worse | neither | mean gap |",
        "|---|---|---|---|---|",
    ]
    for name in sorted(means, key=lambda name: -means[name]):
        better, worse, _ = (sum(part) for part in zip(*against[name], strict=True))
        neither, said = len(against[name]) - better - worse, name if name in UNTUNED else f"*{name}*"
        lines.append(f"| {said} | {better} | {worse} | {neither} | {means[name]:+.2f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, encoding="utf-8")
