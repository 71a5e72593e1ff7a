"""Regularizers side by side: how well each predicts, and what its advice is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from certeq.questions.asking import RECORDED
from certeq.questions.comparison import Comparison
from certeq.report import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORST = 3.0  # log probability per transition behind the best, beyond which a method is only said to be off the picture


def comparison(found: Comparison) -> Figure:
    """Two panels: held-out log probability behind the best (with two standard errors), and posterior value (90 %)."""
    names = [each.name for each in found.entries]
    height = 0.9 + 0.22 * (len(names) + 1)
    with style.style(page=True):
        figure: Figure
        figure, [[left, right]] = style.canvas(2, height=height)
        for y, name in enumerate(names):
            color = style.COLORS[1] if name == found.recommended else style.INK
            _prediction(left, found, name, y, color)
            _value(right, found, name, y, color)
        _value(right, found, RECORDED, len(names), "#7a828a")
        for axis, labels in ((left, [*names, RECORDED]), (right, [""] * (len(names) + 1))):
            axis.set_yticks(np.arange(len(names) + 1), labels)
            axis.set_ylim(len(names) + 0.6, -0.6)
        left.set_xlabel("log probability of a held-out\ntransition, behind the best")
        right.set_xlabel("value under the posterior,\n90 % interval")
    return figure


def _prediction(axis: Any, found: Comparison, name: str, y: int, color: str) -> None:
    lead, error = found.lead(name, found.best) if found.entry(name).predicts else (float("nan"), float("nan"))
    if np.isfinite(lead) and lead > -WORST:
        axis.errorbar([lead], [y], xerr=[2 * error], color=color, marker="o", capsize=2)
        return
    said = "predicts nothing" if np.isnan(lead) else "rules out what happened" if np.isinf(lead) else f"{lead:.2g}"
    axis.text(0.02, y, said, transform=axis.get_yaxis_transform(), va="center", fontsize=7, color=color)


def _value(axis: Any, found: Comparison, name: str, y: int, color: str) -> None:
    mean, low, high = found.values.interval(name)
    axis.errorbar([mean], [y], xerr=[[mean - low], [high - mean]], color=color, marker="o", capsize=2)


def table(found: Comparison) -> tuple[list[str], list[list[object]]]:
    """Header and lines, one for each regularizer, for a CSV or a page."""
    header = [
        "regularizer", "strength", "log probability", "impossible", "brier", "expected error", "mse",
        "value", "value low", "value high", "difference", "difference low", "difference high", "better", "agreement",
    ]  # fmt: skip
    lines: list[list[object]] = []
    for each in found.entries:
        value = found.values.interval(each.name)
        apart = found.values.difference(each.name, found.recommended)
        score = found.score(each.name)
        lines.append(
            [
                each.name,
                each.settings.get("strength"),
                score if np.isfinite(score) else None,
                each.impossible if each.predicts else None,
                each.brier if each.predicts else None,
                each.expected_error,
                each.mse,
                *value,
                *apart,
                found.agreement(each.name, found.recommended),
            ]
        )
    return header, lines
