"""Rows in, `Batch` out: files, data frames, Minari data sets, Gymnasium environments."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from certeq.base.arrays import Integers, Rng
from certeq.base.errors import InputError
from certeq.base.fields import takes
from certeq.base.limits import most
from certeq.data.batch import Batch
from certeq.data.reading.batches import UNRELATED, make_batch, relate
from certeq.data.reading.files import resolve
from certeq.data.reading.frames import Table, open_table
from certeq.data.reading.gymnasium import rollout
from certeq.data.reading.minari import is_minari, open_minari
from certeq.data.reading.reward_tables import known_rewards, rewards_of_pairs
from certeq.data.reading.roles import Roles, find_roles
from certeq.data.request import Request

__all__ = ["UNRELATED", "columns", "known_rewards", "read", "related", "rewards_of_pairs", "rollout"]


@takes(Request)
def read(
    source: Any, request: Request | None = None, *, limit_bytes: int | None = None, rng: Rng = 0, **said: Any
) -> Batch:
    """Read logged decisions.

    Parameters
    ----------
    source
        A CSV, Parquet, Arrow or JSON-lines file; the folder of a Minari data set; a pandas, polars or pyarrow table; or
        a dict of arrays.
    request
        What `certeq.data.request.Request` holds, in one value; keywords change single fields of it.
    state, action, reward, next_state, episode, time, done, truncated
        Which column is what. State, next state and action may be several columns. None: found by common spellings,
        which ``Batch.notes`` tells. False: there is none; ``reward=False`` where rewards will be given later. ``done``
        marks rows after which the episode ended for good, ``truncated`` rows after which only the watching stopped; a
        column that says yes or no, or ``{"outcome": ["death", "discharge"]}`` for what a column then says.
    cost, minimize
        A column of which less is better, in place of a reward; or that less of the reward is better (True), or more
        (False). A reward whose name sounds like a cost or a harm needs one of them said.
    ends
        Whether an episode without such marks is over at its last row: 'always', 'never' (it was cut off, and what came
        of the last action is not known), or a column that says so there. None: decided from the rows, which
        ``Batch.decisions`` tells.
    bins
        How columns become states or actions: a number of quantile bins for all continuous columns, or for a column
        'labels', 'quantile:4', 'edges:1,2.5,7' or 'kmeans:8'; ``{"*": 3, "age": "edges:18,40,65"}`` says both. By
        default, columns are cut as finely as predicts rewards and next values best out of sample (see
        `certeq.data.reading.choosing`), and at their quartiles where there are fewer than 200 rows or no rewards. Whole
        numbers of which there are many different ones, or few rows of each, are cut too, unless they name states (see
        `certeq.data.recipes.fit`). ``Batch.notes`` tells all that.
    missing
        What to do where a value of the state is missing: 'error', make it a cell of its own ('category'), or take the
        'last' value of the same episode, and the cell where there was none. One word for all columns, or a mapping as
        for bins. ``Batch.notes`` tells in how many rows.
    ordered, unordered
        Labels of a state column in their order, such as ``{'stage': ['mild', 'severe']}``, so that a state can learn
        from its neighbors; and columns whose numbers have no order, such as codes. By default, numbers, their bins and
        dates have an order, and text has none.
    unit
        Units of columns of numbers, such as ``{'sbp': 'mmHg'}``, written after them in states, rules and the report.
    max_states
        More states than this are refused.
    layout
        'explicit': each row holds its next state. 'long': the next state is that of the next row of the same episode,
        in order of time. 'auto': explicit where there is a column for the next state.
    gaps
        In the long layout, a step in time that is not the usual one is an 'error', or 'allow' it, or 'cut' there.
        The explicit layout has no gaps.
    limit_bytes
        Largest file that is read, and largest table that one may unpack to; by default an eighth of the machine's
        memory, or what the environment says (CERTEQ_MAX_BYTES).
    rng
        Seed of k-means.

    Returns
    -------
    Batch
        Rows with an episode stand together, in order of time; ``time`` numbers them from 0.
    """
    asked = Request.of(request, **said)
    table, roles = open_roles(source, asked, limit_bytes)
    return _placed(make_batch(table, roles, asked, rng=rng), asked)


@takes(Request)
def related(
    source: Any, batch: Batch, request: Request | None = None, *, limit_bytes: int | None = None, **said: Any
) -> tuple[Integers, Integers, Integers]:
    """Read other rows in terms of the states and actions of a batch that was read before.

    Columns are named as for `read`. Gives state, action and next state of each transition: ENDED where the episode
    ended, UNRELATED where the batch does not know a state or an action.
    """
    if batch.recipe is None or batch.action_recipe is None:
        raise InputError("Other rows can be related only to a batch that was read from a table.")
    asked = Request.of(request, **said)
    table, roles = open_roles(source, asked, limit_bytes)
    return relate(
        table,
        roles,
        batch.recipe,
        batch.action_recipe,
        asked if asked.ends is not None else replace(asked, ends=batch.ends),
    )


def columns(source: Any, *, limit_bytes: int | None = None) -> Table:
    """Open a table as it is, such as new rows for `Recipe.encode`: a mapping of names to columns."""
    return open_table(source, limit_bytes)


def _placed(batch: Batch, asked: Request) -> Batch:
    """The batch with its states where the user says that they lie."""
    if batch.recipe is None or (asked.ordered is None and asked.unordered is None):
        return batch
    unordered = [asked.unordered] if isinstance(asked.unordered, str) else asked.unordered
    return replace(batch, positions=batch.recipe.placed(asked.ordered or {}, unordered or ()))


def open_roles(source: Any, request: Request, limit_bytes: int | None = None) -> tuple[Table, Roles]:
    """Open a source: its table, and which column is what; some sources tell that themselves."""
    table, given = _open_any(source, limit_bytes)
    said = {role: name for role, name in request.roles.items() if name is not None}
    if "state" in said:  # the next states are then the partners of these
        given.pop("next_state", None)
    return table, find_roles(tuple(table), given | said, request.layout, request.smaller)


def _open_any(source: Any, limit_bytes: int | None) -> tuple[Table, dict[str, Any]]:
    """Open a source: its table, and the roles of its columns where the source itself tells them."""
    if isinstance(source, str | os.PathLike):
        path = resolve(source)
        if path.is_dir():
            if is_minari(path):
                return open_minari(path, most("bytes") if limit_bytes is None else limit_bytes)
            raise InputError(
                f"{path.name} is a folder, and not a Minari data set, which has a file data/metadata.json. Give the "
                "name of a table file inside it."
            )
    return open_table(source, limit_bytes), {}
