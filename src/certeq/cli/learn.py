"""``certeq learn``: from a file of logged decisions, or from counts of them, to a policy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from certeq.cli import options, source
from certeq.cli.options import Output, Work
from certeq.data.request import Request
from certeq.learning.rules import Rules

if TYPE_CHECKING:
    from certeq.data.batch import Batch
    from certeq.data.counting import Tallied
    from certeq.learning.learned import Learned


@options.expand
def learn(
    data: source.RowsOrCounts = None,
    *,
    request: Request,
    known: source.Known,
    rules: Rules,
    output: Output,
    work: Work,
) -> None:
    """Learn a policy from logged decisions.

    Reads rows (state, action, reward, next state), or rows in order of time for each episode; counts them; regularizes
    what is estimated; plans; and writes policy.json, policy.csv, summary.json and report.html. With very many states it
    writes policy.npz in place of the first two, which certeq apply reads as well.

    A folder of Parquet files is counted without being held in memory, as certeq count does, here or, with
    --scheduler, on a Dask cluster whose workers send counts and never rows. What only rows can tell is then missing in
    the report, with the reason.

    Once a long plan shows its progress, Ctrl-C keeps what it has so far, with its bound.
    """
    import typer

    from certeq.base import texts, writing
    from certeq.cli import show

    asked = {"report.html": output.report, "checklist.md": output.checklist}
    names = ("policy.json", "policy.csv", "policy.npz", "summary.json", *(each for each in asked if asked[each]))
    paths = {name: output.out / name for name in names}
    writing.check_free(paths.values(), force=output.force)
    console = show.console()
    columns = dict.fromkeys([*(request.beside or ()), *(each.column for each in rules.limits)])
    request = replace(request, beside=list(columns) or None)
    found, reward = source.get(console, data, request, known, work, output.seed, partial(_load, output))
    from certeq.learning import screen
    from certeq.learning.learned import learn as run
    from certeq.questions.sure import to_json
    from certeq.report import checklist

    _compile_ahead(found, rules, output)
    with show.Planning() as planning:
        learned = run(found, rules, reward=reward, progress=planning.progress, on_interrupt="return")
        planning.check(learned)
    files: dict[Path, writing.Content] = {}
    told: dict[str, Any] = {"seed": output.seed}
    findings = None
    if learned.interrupted:  # somebody who wants an end does not want all that a report asks
        paths = {name: path for name, path in paths.items() if name not in asked}
    elif output.report:
        findings, files[paths["report.html"]] = show.page(learned, output, work, data)
        learned, told = findings.learned, told | {"sure": to_json(findings)}
        more = {"groups": findings.groups, "limits": findings.frontier, "risk": findings.risk}
        told |= {name: found.to_json() for name, found in more.items() if found is not None}
        if output.checklist:
            files[paths["checklist.md"]] = checklist.write(findings, seed=output.seed)
    else:
        learned = show.sure(learned, output, work)
    policy = learned.policy
    if policy.readable:
        files |= {paths["policy.json"]: policy.to_bytes(), paths["policy.csv"]: policy_csv(learned)}
    else:
        files[paths["policy.npz"]] = policy.to_archive
    files[paths["summary.json"]] = texts.json_text(learned.summary.to_json() | told)
    writing.write_files(files, force=output.force, last=True)
    others = [paths[name] for name in ("policy.json", "policy.csv", "policy.npz") if paths[name] not in files]
    removed = writing.remove(others)  # of an earlier run: nobody may take them for this one's
    screen.show(learned, console)
    if findings is not None:
        show.worth(console, findings)
    show.written(console, *(path for path in paths.values() if path in files))
    if removed:
        names_of = ", ".join(map(show.escape, removed))
        console.print(f"Removed, so that nobody mistakes them for these results: {names_of}", soft_wrap=True)
    if not policy.readable:
        console.print(
            f"{len(policy.visits):,} states are too many to read one by one: policy.npz holds the policy for certeq "
            "apply and certeq.Policy.load, and policy.json and policy.csv were left out. In Python, "
            "Policy.load('policy.npz').save('policy.json') writes the readable form."
        )
    if learned.interrupted:
        console.print(
            "Planning was stopped; this is what it had found by then." + " No report was made." * output.report
        )
        raise typer.Exit(130)


def _load(output: Output) -> None:
    """Load what is needed once there are rows."""
    from certeq.questions.examine import all_questions

    all_questions()
    if output.report:
        from certeq.report.learned_page import render  # noqa: F401 - to have it loaded


def _compile_ahead(found: Batch | Tallied, rules: Rules, output: Output) -> None:
    """Have another process compile, the first time, what is needed after learning, if several models will be drawn."""
    from certeq.data.batch import Batch
    from certeq.questions import rehearsal
    from certeq.questions.asking import MOST
    from certeq.questions.sparse_draws import WRITTEN

    sizes = found if isinstance(found, Batch) else found.counts
    S, A = sizes.n_states, sizes.n_actions
    if output.draws or (output.draws is None and S * A <= MOST):
        written = S * A * S <= WRITTEN
        rehearsal.begin(S, ["magnitudes", *["plans"] * (written and rules.horizon is None), *["draws"] * written])


def policy_csv(learned: Learned) -> str:
    """The policy as a table, one line per state (and decision, with a horizon)."""
    from certeq.base.texts import csv_text

    policy, timed = learned.policy, learned.policy.horizon is not None
    told = ("advice", "action", "chance", "set", "at_stake", "visits", "weight", "value", "runner_up", "gap")
    axes = [f"state: {axis}" if axis in (*told, "decision") else axis for axis in policy.recipe.axis_names]
    lines = []
    for piece in policy.pieces(weight=learned.shrinkage.weight, values=learned.plan.values):
        weight = None if piece.weight is None else round(piece.weight, 6)
        advice = (piece.told, piece.advised, piece.chance, " | ".join(piece.among) or None, piece.stake)
        support = (piece.visits, weight, piece.value, piece.runner_up, piece.gap)
        lines.append([*[piece.decision] * timed, *piece.words, *advice, *support])
    return csv_text([*["decision"] * timed, *axes, *told], lines)
