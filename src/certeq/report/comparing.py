"""Regularizers side by side: how well each predicts, and what its advice is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.base.display import between, number
from certeq.questions.comparison import Comparison, Lead
from certeq.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORST = 3.0  # log probability per transition behind, beyond which a method is off the picture


def comparison(found: Comparison) -> Figure:
    """Two panels, both against the recommended: held-out log probability (two standard errors), and value (90%)."""
    names = [each.name for each in found.entries]
    height = 0.9 + 0.22 * len(names)
    with style.style(page=True):
        figure: Figure
        figure, [[left, right]] = style.canvas(2, height=height)
        for y, name in enumerate(names):
            color = style.COLORS[1] if name == found.recommended else style.INK
            _prediction(left, found, name, y, color)
            _value(right, found, name, y, color)
        for axis, labels in ((left, names), (right, [""] * len(names))):
            axis.axvline(0, color=style.INK, linewidth=0.5)
            axis.set_yticks(np.arange(len(names)), labels)
            axis.set_ylim(len(names) - 0.4, -0.6)
        left.set_xlabel("log probability of a held-out\ntransition, against the recommended")
        right.set_xlabel("value in drawn models,\nagainst the recommended, 90% interval")
    return figure


def _prediction(axis: Any, found: Comparison, name: str, y: int, color: str) -> None:
    said, lead = shown(found, name)
    if lead is not None:
        axis.errorbar([lead.mean], [y], xerr=[2 * lead.error], color=color, marker="o", capsize=2)
        return
    axis.text(0.02, y, said, transform=axis.get_yaxis_transform(), va="center", fontsize=7, color=color)


def _value(axis: Any, found: Comparison, name: str, y: int, color: str) -> None:
    _, apart = found.worth(name)
    ends = np.maximum([[apart.mean - apart.low], [apart.high - apart.mean]], 0)  # a few draws may pull a mean beyond
    axis.errorbar([apart.mean], [y], xerr=ends, color=color, marker="o", capsize=2)


def shown(found: Comparison, name: str) -> tuple[str, Lead | None]:
    """What is written of a prediction, and its place on a scale; None where it has none, or one too far off."""
    word, lead = found.prediction(name)
    if lead is None:
        return word, Lead(0.0, 0.0) if word == "recommended" else None
    return f"{word}, {number(lead.mean)} ({number(lead.error, 2)})", lead if lead.mean > -WORST else None


def value_words(found: Comparison, name: str) -> str:
    """What is written of a difference in value."""
    word, apart = found.worth(name)
    if word in ("recommended", "the same advice"):
        return word
    return f"{word}, {number(apart.mean)} ({between(apart.low, apart.high)})"


def table(found: Comparison) -> tuple[list[str], list[list[object]]]:
    """Header and lines, one for each regularizer, for a CSV or a page; differences are to the recommended one."""
    header = [
        "regularizer", "strength", "prediction", "lead", "standard error", "worth", "difference", "difference low",
        "difference high", "better", "agreement", "value", "value low", "value high", "log probability", "impossible",
        "brier", "expected error", "mse",
    ]  # fmt: skip
    lines: list[list[object]] = []
    for each in found.entries:
        (predicted, lead), (worth, apart) = found.prediction(each.name), found.worth(each.name)
        score = found.score(each.name)
        lines.append(
            [
                each.name,
                each.settings.get("strength"),
                predicted,
                *((None, None) if lead is None else lead),
                worth,
                *apart,
                found.agreement(each.name, found.recommended),
                *found.values.interval(each.name),
                score if np.isfinite(score) else None,
                each.impossible if each.predicts else None,
                each.brier if each.predicts else None,
                each.expected_error,
                each.mse,
            ]
        )
    return header, lines
