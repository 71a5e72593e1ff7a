"""Policy files: wrong shapes, numbers that are none, versions to come, fields twice or never, nesting without end."""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

CASES: dict[str, Callable[[Path], tuple[Any, ...]]] = {}
APPLY = ("apply", "policy.json", "rows.csv", "--out", "out/actions.csv")
ROWS = {
    "episode": [1, 1, 1, 1, 2, 2, 2],
    "time": [0, 1, 2, 3, 0, 1, 2],
    "ward": ["A", "B", "A", "B", "B", "B", "A"],
    "age": [40.5, 41.5, 60.5, 61.5, 39.5, 62.5, 63.5],
    "action": ["x", "y", "x", "x", "y", "y", "x"],
    "reward": [0, 1, 0, 1, 1, 0, 1],
}


@cache
def _sound() -> dict[str, Any]:
    from certeq import learn, read

    return learn(read(ROWS, bins={"age": "edges:50"})).policy.to_json()


def write(folder: Path, text: str | bytes) -> tuple[Any, ...]:
    """Write a policy file and rows that it could be applied to."""
    (folder / "policy.json").write_bytes(text.encode() if isinstance(text, str) else text)
    lines = [",".join(map(str, line)) for line in zip(*ROWS.values(), strict=True)]
    (folder / "rows.csv").write_text("\n".join([",".join(ROWS), *lines]) + "\n")
    return APPLY


def raw(name: str, text: str | bytes | Callable[[], str]) -> None:
    """Register a text in place of a policy file."""
    CASES[f"policy: {name}"] = lambda folder: write(folder, text() if callable(text) else text)


def spoiled(name: str, spoil: Callable[[dict[str, Any]], Any]) -> None:
    """Register what spoils a sound policy."""

    def make(folder: Path) -> tuple[Any, ...]:
        policy = copy.deepcopy(_sound())
        return write(folder, json.dumps(spoil(policy) or policy))

    CASES[f"policy: {name}"] = make


def sound_text() -> str:
    """A policy file that can be read."""
    return json.dumps(_sound())


raw("empty", "")
raw("no JSON", "policy")
raw("a list", "[]")
raw("a number", "7")
raw("cut off", lambda: sound_text()[:-200])
raw("invalid UTF-8", b'{"format": "certeq-policy\xff"}')
raw("UTF-16", json.dumps({"format": "certeq-policy"}).encode("utf-16"))
raw("NUL bytes", b"\0" * 100)
raw("10,000 deep", "[" * 10_000)
raw("10,000,000 deep", "[" * 10_000_000)
raw("900 deep in its settings", lambda: sound_text().replace('"settings": {', '"settings": {"x":' + '{"x":' * 900, 1))
raw("NaN", lambda: sound_text().replace('"action_values": [[', '"action_values": [[NaN, ', 1))
raw("Infinity", lambda: sound_text().replace('"action_values": [[', '"action_values": [[Infinity, ', 1))
raw("1e999", lambda: sound_text().replace('"action_values": [[', '"action_values": [[1e999, ', 1))
raw("a number of 5,000 digits", lambda: sound_text().replace('"version": 1', '"version": ' + "9" * 5000, 1))
raw("a field twice", lambda: sound_text().replace('"version": 1', '"version": 1, "version": 1', 1))
raw("a field twice, spelled differently", lambda: sound_text().replace("{", '{"\\u0076ersion": 1, ', 1))
raw("an inner field twice", lambda: sound_text().replace('"cell": [', '"cell": [0, 0], "cell": [', 1))
raw("100 MB of blanks", lambda: sound_text() + " " * 100_000_000)
raw("20,000,000 empty objects", lambda: '{"format":"certeq-policy","version":1,"x":[' + "{}," * 20_000_000 + "{}]}")
raw(
    "a text of 50 MB as an action",
    lambda: sound_text().replace('"actions": ["x"', '"actions": ["' + "x" * 50_000_000 + '"', 1),
)

for _field in ("format", "version", "actions", "states", "advice", "action_values", "recipe"):
    spoiled(f"without {_field!r}", lambda policy, field=_field: policy.pop(field) and None)  # type: ignore[misc]
    for _other in (None, 7, "text", [], {}, [[]], [None], True, -1, 2**70, {"a": 1}):
        spoiled(
            f"{_field!r} is {_other!r}"[:60],
            lambda policy, field=_field, other=_other: policy.update({field: other}),  # type: ignore[misc]
        )

spoiled("a version to come", lambda policy: policy.update(version=2))
spoiled("a recipe of a version to come", lambda policy: policy["recipe"].update(version=2))
spoiled("a horizon it has not", lambda policy: policy.update(horizon=3))
spoiled("one state less", lambda policy: policy["states"].pop() and None)
spoiled("states in another order", lambda policy: policy["states"].reverse())
spoiled("negative visits", lambda policy: policy["states"][0].update(visits=[-1, 0]))
spoiled("half a visit", lambda policy: policy["states"][0].update(visits=[0.5, 0]))
spoiled("visits beyond all numbers", lambda policy: policy["states"][0].update(visits=[10**40, 0]))
spoiled("advice of another length", lambda policy: policy["advice"].append(None))
spoiled("advice that is no action", lambda policy: policy["advice"].__setitem__(0, "z"))
spoiled("advice within advice", lambda policy: policy.update(advice=[[[[policy["advice"]]]]]))
spoiled("advice 40 deep", lambda policy: policy.update(advice=json.loads("[" * 40 + "]" * 40)))
spoiled("values 40 deep", lambda policy: policy.update(action_values=json.loads("[" * 40 + "]" * 40)))
spoiled("values of another shape", lambda policy: policy["action_values"][0].append(1.0))
spoiled("a text among the values", lambda policy: policy["action_values"][0].__setitem__(0, "1"))
spoiled("an action twice", lambda policy: policy.update(actions=["x", "x"]))
spoiled("edges that fall", lambda policy: policy["recipe"]["axes"][1].update(edges=[50, 40]))
spoiled("an edge that is a text", lambda policy: policy["recipe"]["axes"][1].update(edges=["50"]))
spoiled("cells out of range", lambda policy: policy["recipe"].update(cells=[[0, 9]]))
spoiled("cells of half a number", lambda policy: policy["recipe"].update(cells=[[0.5, 0]]))
spoiled("no axes", lambda policy: policy["recipe"].update(axes=[]))
spoiled("an axis of no kind", lambda policy: policy["recipe"]["axes"].__setitem__(0, {"column": "ward"}))
spoiled("labels of mixed kinds", lambda policy: policy["recipe"]["axes"][0].update(labels=["A", 1]))
spoiled("a label twice", lambda policy: policy["recipe"]["axes"][0].update(labels=["A", "A"]))


def _pipe(folder: Path) -> tuple[Any, ...]:
    write(folder, "")
    (folder / "policy.json").unlink()
    os.mkfifo(folder / "policy.json")
    return APPLY


def _linked(target: str) -> Callable[[Path], tuple[Any, ...]]:
    def make(folder: Path) -> tuple[Any, ...]:
        write(folder, "")
        (folder / "policy.json").unlink()
        (folder / "policy.json").symlink_to(target)
        return APPLY

    return make


CASES["policy: a pipe that nobody writes to"] = _pipe
CASES["policy: a link to itself"] = _linked("policy.json")
CASES["policy: a link to an endless device"] = _linked("/dev/zero")
CASES["policy: a folder"] = lambda folder: (
    write(folder, ""),
    (folder / "policy.json").unlink(),
    (folder / "policy.json").mkdir(),
    APPLY,
)[-1]  # type: ignore[func-returns-value]
CASES["policy: an address"] = lambda folder: ("apply", "https://example.org/policy.json", "rows.csv")
