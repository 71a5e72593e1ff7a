"""The page on a table that was looked at: one HTML file that needs nothing else."""

from __future__ import annotations

import certeq
from certeq.base.display import harmless, shorten
from certeq.data.check import Checked
from certeq.report import html


def render(found: Checked, name: str = "") -> str:
    """Write the page; ``name`` is the file as a command line has it."""
    return html.write(
        "checked.html",
        style="page.css",
        title="Before learning" + (f" from {shorten(name, 80)}" if name else ""),
        found=found,
        columns=[each._replace(name=harmless(each.name), span=harmless(each.span)) for each in found.columns],
        refused=[harmless(why) for why in found.refused],
        alerts=[harmless(alert) for alert in found.alerts()],
        lines=[harmless(line) for line in found.lines()],
        command=None if (way := found.command(name)) is None else harmless(way),
        version=certeq.__version__,
    )
