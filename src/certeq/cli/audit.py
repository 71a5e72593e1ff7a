"""``certeq audit``: what a planning discount assumes about a file of logged decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from certeq.base.errors import InputError
from certeq.cli import source


def audit(
    data: source.DataOrCounts = None,
    state: source.State = None,
    action: source.Action = None,
    reward: source.Reward = None,
    next_state: source.NextState = None,
    episode: source.Episode = None,
    time: source.Time = None,
    done: source.Done = None,
    truncated: source.Truncated = None,
    bins: source.Bins = None,
    gaps: source.Gaps = "error",
    layout: source.Layout = "auto",
    max_states: source.MaxStates = None,
    discount: source.Discount = 0.99,
    planning_discount: Annotated[
        float | None, typer.Option(help="The lower discount that was, or would be, planned with.")
    ] = None,
    threshold: Annotated[int, typer.Option(help="Visits below which the shortcut 'threshold' drops a pair.")] = 6,
    unvisited: source.Unvisited = "exclude",
    min_visits: source.MinVisits = 1,
    reward_by: source.RewardBy = "pair",
    reward_pool: source.RewardPool = "none",
    reward_table: source.RewardTable = None,
    horizon: source.Horizon = None,
    out: source.Out = Path("certeq-out"),
    report: source.Report = True,
    draws: source.Draws = None,
    suppress_below: source.SuppressBelow = 0,
    workers: source.Workers = 1,
    scheduler: source.Scheduler = None,
    seed: source.Seed = 0,
    force: source.Force = False,
) -> None:
    """Tell what planning with a lower discount assumes about your data.

    For each pair, how many invented transitions the lower discount amounts to; how the advice would differ if as many
    were spread evenly, if the data chose their number, and without any; what common shortcuts mean in the same terms.
    Writes audit.json and report.html, the report on planning with that discount.
    """
    from certeq.base import texts, writing
    from certeq.cli import show
    from certeq.questions.audit import audit as run

    if planning_discount is None:
        raise InputError("Say which discount to audit, for example --planning-discount 0.9.")
    paths = [out / name for name in ("audit.json", *(["report.html"] if report else []))]
    writing.check_free(paths, force=force)
    console = show.console()
    given = source.get(
        console,
        data,
        workers=workers,
        scheduler=scheduler,
        state=state,
        action=action,
        reward=reward,
        next_state=next_state,
        episode=episode,
        time=time,
        done=done,
        truncated=truncated,
        bins=bins,
        gaps=gaps,
        layout=layout,
        max_states=max_states,
        reward_table=reward_table,
        seed=seed,
    )
    learned = source.learn(
        given,
        reward_table=reward_table,
        discount=discount,
        regularizer="discount",
        planning_discount=planning_discount,
        unvisited=unvisited,
        min_visits=min_visits,
        reward_by=reward_by,
        reward_pool=reward_pool,
        horizon=horizon,
    )
    found = run(learned, planning_discount, threshold=threshold)
    told = {"settings": dict(learned.summary.settings), "seed": seed, "data": dict(learned.policy.data)}
    files: dict[Path, str | bytes] = {paths[0]: texts.json_text(found.to_json() | told)}
    if report:
        how: dict[str, Any] = {
            "draws": draws,
            "suppress_below": suppress_below,
            "workers": workers,
            "scheduler": scheduler,
        }
        files[paths[1]] = show.page(learned, seed=seed, planning_discount=planning_discount, **how)
    writing.write_files(files, force=force)
    for line in found.lines():
        console.print(show.escape(line))
    show.written(console, *paths)
