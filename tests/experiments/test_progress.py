"""How ``certeq reproduce`` tells how far it is."""

import re

from rich.console import Console

from certeq.cli import show
from certeq.cli.watching import ProgressBars, ProgressLines


def test_a_terminal_gets_a_bar_with_rate_and_time_left():
    console = Console(force_terminal=True, width=120, record=True, color_system=None)
    with ProgressBars(console) as bars:
        bars.begin("equal_counts", "data sets")
        bars.progress(0, 1000)
        bars.progress(500, 1000)
        bars.progress(1000, 1000)
        bars.end({"verdicts": [{"outcome": "holds"}]}, 1.0)
    said = console.export_text()
    assert re.search(r"equal_counts .* 1,000/1,000 .*data sets/s .*1 holds", said)


def test_without_a_terminal_there_is_a_line_now_and_then(capsys):
    clock = iter(range(0, 1000, 6))
    lines = ProgressLines(show.console(), clock=lambda: next(clock))
    lines.begin("tumor", "data sets")
    for done in (40, 80, 120, 160, 200):
        lines.progress(done, 200)
    lines.end({"verdicts": [{"outcome": "undecided"}]}, 75.2)
    assert capsys.readouterr().out.splitlines() == [
        "tumor: 40 of 200 data sets were done before",
        "tumor: 80 of 200 data sets, 6.7 per second, 18 s left",
        "tumor: 160 of 200 data sets, 6.7 per second, 6 s left",
        "tumor: 1 undecided (75 s)",
    ]
