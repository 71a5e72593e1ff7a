"""Tallied: what is left of many rows, enough to learn from; kept in a file that holds numbers and no code.

The file is a NumPy archive (.npz) of flat arrays and one text in JSON. Its format has a version of its own
(``VERSION``): a file of an older version is read for ever, a file of a newer one is refused with a clear word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import certeq
from certeq.base.archives import of_size, unpack
from certeq.base.arrays import Integers, whole
from certeq.base.doors import door
from certeq.base.errors import InputError
from certeq.base.keeping import pack
from certeq.base.writing import write_files
from certeq.data.counting.parts import LeftOut, Part, matrix
from certeq.data.counting.tallying import Cells
from certeq.data.counts import DENSE_LIMIT, Counts
from certeq.data.reading import endings
from certeq.data.reading.roles import Roles
from certeq.data.recipes import Recipe
from certeq.data.sums import Sums

FORMAT = "certeq-counts"
VERSION = 2
MOST = 2**62  # rows: more could not be added up
ARRAYS: dict[str, type[np.generic]] = {
    "about": np.uint8,  # JSON
    "pointer": np.int64,  # (S * A + 1,): where the cells of each pair begin
    "next_state": np.int32,  # of each cell
    "count": np.int64,  # of each cell
    "ended": np.int64,  # (S * A,), or none
    "reward_total": np.float64,  # (S * A,), in version 1: by pair
    "reward_earned": np.float64,  # (2 * S * A,), since version 2: of rows that went on, then ended
    "reward_arrived": np.float64,  # (S + 1,), or none: by next state, the last entry for an ending
}


@dataclass(frozen=True)
class Tallied:
    """Counts of rows and sums of their rewards, with the names of states and actions and where the rows came from."""

    counts: Counts  # dense or sparse, as `certeq.tally` would have it
    recipe: Recipe  # columns -> states
    action_recipe: Recipe
    rewards: Sums | None = None
    rows: int = 0  # that were read
    dropped: Mapping[str, int] = field(default_factory=dict)  # why rows were not counted -> how many
    notes: tuple[str, ...] = ()
    files: tuple[str, ...] = ()  # names
    fingerprint: str | None = None  # SHA-256 of the file; of several, of the list that sha256sum writes about them
    goal: str = ""  # which way is better, in words

    def __post_init__(self) -> None:
        S, A = self.counts.n_states, self.counts.n_actions
        if (self.recipe.n_states, self.action_recipe.n_states) != (S, A):
            raise InputError(
                f"Counts of {S:,} states and {A:,} actions do not match recipes for {self.recipe.n_states:,} and "
                f"{self.action_recipe.n_states:,}."
            )
        if self.rewards is not None and not np.array_equal(self.rewards.visits, self.counts.visits):
            raise InputError("Counts and sums of rewards are of different rows: their visits differ.")

    def __len__(self) -> int:
        return int(self.counts.visits.sum())

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the states."""
        return self.recipe.names

    @property
    def action_names(self) -> tuple[str, ...]:
        """Names of the actions."""
        return self.action_recipe.names

    @property
    def reward_range(self) -> tuple[float, float] | None:
        """The least and the greatest reward."""
        return (
            None
            if self.rewards is None
            else (float(self.rewards.span[:, 0].min()), float(self.rewards.span[:, 1].max()))
        )

    @property
    def endings(self) -> int:
        """How many rows ended their episode."""
        return 0 if self.counts.ended is None else int(self.counts.ended.sum())

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a file, whole or not at all."""
        write_files({Path(path): self.to_bytes()}, force=force)

    def to_bytes(self) -> bytes:
        """The file's content, the same for the same counts wherever they were made."""
        cells = _cells(self.counts)
        about: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "certeq": certeq.__version__,
            "states": self.recipe.to_json(),
            "actions": self.action_recipe.to_json(),
            "rows": self.rows,
            "dropped": dict(self.dropped),
            "notes": list(self.notes),
            "files": list(self.files),
            "fingerprint": self.fingerprint,
            "goal": self.goal,
        }
        arrays: dict[str, NDArray[Any]] = dict(zip(("pointer", "next_state", "count"), cells, strict=True))
        if self.counts.ended is not None:
            arrays["ended"] = self.counts.ended.ravel()
        if self.rewards is not None:
            span = [[float(end) for end in kind] if np.isfinite(kind).all() else None for kind in self.rewards.span]
            about["reward"] = {"unit": self.rewards.size, "spread": self.rewards.spread.tolist(), "span": span}
            arrays |= {"reward_earned": self.rewards.earned.ravel(), "reward_arrived": self.rewards.arrived}
        return pack(arrays, json.dumps(about, ensure_ascii=False, allow_nan=False).encode())

    @classmethod
    def load(cls, path: str | Path, *, limit_bytes: int | None = None) -> Tallied:
        """Read a file that `save` wrote; sizes are checked before anything is unpacked."""
        arrays = unpack(path, ARRAYS, "file of counts", limit_bytes)
        with door(str(path), "It is damaged, or not a file of counts."):
            return _tallied(arrays)


def finish(part: Part, roles: Roles, files: tuple[str, ...], fingerprint: str | None) -> Tallied:
    """Make the result of the last part that is left."""
    if not len(part.states):
        why = "; ".join(f"{reason}: {number:,}" for reason, number in part.dropped.items())
        raise InputError(
            f"No transition is left of {part.rows:,} row{'s' * (part.rows > 1)} ({why}). A transition needs an action "
            "and a next state."
        )
    if part.rewards is not None:
        _check_kept(part.rewards, part, str(roles.reward))
    counts = _counts(part.cells, part.ended if part.ended.any() else None, part.states.recipe(), len(part.actions))
    return Tallied(
        counts,
        part.states.recipe(),
        part.actions.recipe(),
        part.rewards,
        part.rows,
        part.dropped,
        roles.notes,
        files,
        fingerprint,
        roles.goal,
    )


def _check_kept(rewards: Sums, part: Part, name: str) -> None:
    """Refuse to leave out the rows that hold most of what the rewards tell, as a reader does."""
    number, low, high = rewards.number, rewards.span[:, 0].min(), rewards.span[:, 1].max()
    mean = rewards.earned.sum() / number.sum()
    between = (number * (rewards.earned / np.maximum(number, 1) - mean) ** 2).sum()
    kept = LeftOut(int(number.sum()), float(mean), float(rewards.spread.sum() + between))
    left, unit = part.left, rewards.size
    total = kept | LeftOut(left.number, left.mean / unit, left.spread / unit / unit)
    remains = 0.0 if low == high else kept.spread / kept.number
    share = endings.share_lost(total.spread / total.number, remains, left.number)
    if share > endings.MOST:
        raise InputError(
            f"{endings.most_lost(share, part.dropped, name)} Say which rows ended their episode, by a column (--done "
            "COLUMN) or by what a column says (--done outcome=death,discharge), and let the reward stand in the row of "
            "the action that led to it; or count without a reward."
        )


def _counts(cells: Cells, ended: Integers | None, recipe: Recipe, A: int) -> Counts:
    """Counts, dense where they are small, as `certeq.tally` has them."""
    S = recipe.n_states
    table = matrix(cells, S)
    last = None if ended is None else ended.reshape(S, A)
    if S * A * S > DENSE_LIMIT:
        return Counts(table, last, A, recipe.positions)
    return Counts(table.toarray().reshape(S, A, S), last, A, recipe.positions)


def _cells(counts: Counts) -> Cells:
    import scipy.sparse as sp

    flat = counts.n_states * counts.n_actions
    table = counts.transitions if counts.sparse else sp.csr_array(counts.transitions.reshape(flat, counts.n_states))
    return Cells(table.indptr.astype(np.int64), table.indices.astype(np.int32), table.data.astype(np.int64))


# ---- out of a file ----


def _tallied(arrays: Mapping[str, NDArray[Any]]) -> Tallied:
    about = json.loads(arrays["about"].tobytes().decode("utf-8"), parse_constant=_refuse)
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise InputError(f'This is not a file of counts: it does not say "format": "{FORMAT}".')
    version = whole("version", about.get("version"), 1)
    if version > VERSION:
        raise InputError(f"The file of counts has version {version}; this certeq reads up to {VERSION}. Upgrade it.")
    recipe, action_recipe = Recipe.from_json(about["states"]), Recipe.from_json(about["actions"])
    S, A = recipe.n_states, action_recipe.n_states
    ended = arrays.get("ended")
    counts = _counts(_checked(arrays, S, A), None if ended is None else of_size(ended, S * A, "ended"), recipe, A)
    rewards = None
    if "reward" in about:
        rewards = (_sums if version > 1 else _sums_by_pair)(arrays, counts, about["reward"])
    return Tallied(
        counts,
        recipe,
        action_recipe,
        rewards,
        whole("rows", about["rows"], int(counts.visits.sum()), MOST),
        {str(why): whole(f"dropped[{why!r}]", number, 0) for why, number in about["dropped"].items()},
        tuple(map(str, about["notes"])),
        tuple(map(str, about["files"])),
        None if about["fingerprint"] is None else str(about["fingerprint"]),
        str(about.get("goal", "")),  # older files do not say
    )


def _checked(arrays: Mapping[str, NDArray[Any]], S: int, A: int) -> Cells:
    """Cells whose numbers make sense: a matrix of them is trusted by compiled code."""
    pointer, outcome, number = (arrays[name] for name in ("pointer", "next_state", "count"))
    of_size(pointer, S * A + 1, "pointer")
    of_size(number, len(outcome), "count")
    if pointer[0] != 0 or pointer[-1] != len(outcome) or (np.diff(pointer) < 0).any():
        raise ValueError("pointer must rise from 0 to the number of cells")
    inner = np.ones(len(outcome), dtype=bool)  # cells that are not the first of their line
    inner[pointer[:-1][np.diff(pointer) > 0]] = False
    rises = np.append(True, outcome[1:] > outcome[:-1])[: len(outcome)]
    ended = arrays.get("ended", pointer[:0])
    if number.sum(dtype=np.float64) + ended.sum(dtype=np.float64) >= MOST:
        raise ValueError("so many rows cannot have been counted")
    if (outcome < 0).any() or (outcome >= S).any() or (inner & ~rises).any() or (number < 1).any():
        raise ValueError("next states must rise within each pair, and counts be positive")
    return Cells(pointer, outcome, number)


def _sums(arrays: Mapping[str, NDArray[Any]], counts: Counts, said: Mapping[str, Any]) -> Sums:
    S, A = counts.n_states, counts.n_actions
    earned = of_size(arrays["reward_earned"], 2 * S * A, "reward_earned").reshape(2, S, A)
    spread = np.array([_number(each) for each in said["spread"]])
    span = np.array([(np.inf, -np.inf) if ends is None else tuple(map(_number, ends)) for ends in said["span"]])
    if spread.shape != (2,) or span.shape != (2, 2):
        raise ValueError("there are two kinds of rows")
    return _checked_sums(Sums(_number(said["unit"]), _kinds(counts), earned, spread, *_arrived(arrays, counts), span))


def _sums_by_pair(arrays: Mapping[str, NDArray[Any]], counts: Counts, said: Mapping[str, Any]) -> Sums:
    """Sums of version 1, which tell of a pair what it earned, and of all endings together what they paid.

    Where a pair both went on and ended, its endings are taken to have paid what such endings paid on average.
    """
    S, A = counts.n_states, counts.n_actions
    total = of_size(arrays["reward_total"], S * A, "reward_total").reshape(S, A)
    number, (arrivals, arrived) = _kinds(counts), _arrived(arrays, counts)
    went_on, ended = number
    both = (went_on > 0) & (ended > 0)
    paid = (arrived[-1] - total[(ended > 0) & ~both].sum()) / max(int(ended[both].sum()), 1)
    last = np.where(both, ended * paid, np.where(ended > 0, total, 0.0))
    apart = last / np.maximum(ended, 1) - (total - last) / np.maximum(went_on, 1)
    between = np.where(both, went_on * (ended / np.maximum(went_on + ended, 1)) * apart**2, 0.0).sum()
    spare = np.maximum(number - 1, 0).sum(axis=(-2, -1)) + np.array([1e-9, 0.0])
    spread = max(_number(said["scatter"]) - between, 0.0) * spare / spare.sum()
    there = np.any(number > 0, axis=(-2, -1), keepdims=True)[..., 0]
    span = np.where(there, [_number(said["least"]), _number(said["greatest"])], [np.inf, -np.inf])
    return _checked_sums(
        Sums(_number(said["unit"]), number, np.stack([total - last, last]), spread, arrivals, arrived, span)
    )


def _kinds(counts: Counts) -> Integers:
    """Rows of each pair that went on, and that ended, ``(2, S, A)``."""
    ended = np.zeros_like(counts.visits) if counts.ended is None else counts.ended
    return np.stack([counts.visits - ended, ended])


def _arrived(arrays: Mapping[str, NDArray[Any]], counts: Counts) -> tuple[Integers, NDArray[np.float64]]:
    """How often each next state was reached, and what was earned on the way there; the last entry is an ending."""
    S, A = counts.n_states, counts.n_actions
    flat = counts.transitions if counts.sparse else counts.transitions.reshape(S * A, S)
    ended = 0 if counts.ended is None else int(counts.ended.sum())
    arrivals = np.append(np.asarray(flat.sum(axis=0), dtype=np.int64), ended)
    return arrivals, of_size(arrays["reward_arrived"], S + 1, "reward_arrived")


def _checked_sums(sums: Sums) -> Sums:
    finite = all(np.isfinite(part).all() for part in (sums.size, sums.earned, sums.spread, sums.arrived))
    if sums.size <= 0 or (sums.spread < 0).any() or not finite:
        raise ValueError("sums of rewards must be finite numbers")
    most = 4 * sums.number.sum()  # in units that no reward exceeds
    if (np.abs(sums.earned) > 2 * sums.number).any() or max(sums.spread.max(), np.abs(sums.arrived).max()) > most:
        raise ValueError("so few rows cannot have earned so much")
    return sums


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a number")
    return float(value)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not a number")
