"""Renew what pages show as output: run each page as the tests do, and put what is said now in place of what was said.

``python docs/make_outputs.py [PAGE ...]`` renews all pages, or some. Between two lines of dots, the lines that are most
like the first and the last one shown are looked for in the new output, and what lies between them is shown. Look at the
difference before you keep it: the words around an output may quote its numbers.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "tests" / "docs"))

import docs_pages  # noqa: E402
import docs_runs  # noqa: E402

DOTS = "..."


def renewed(shown: str, said: str) -> str:
    """The output that a page shows, with the words of what is said now."""
    lines, at, new = [line.rstrip() for line in said.splitlines()], 0, []
    for part in parts(shown.splitlines()):
        if part == [DOTS]:
            new += part
            continue
        begin = nearest(part[0], lines, at, at)
        at = nearest(part[-1], lines, begin, begin + len(part) - 1) + 1 if len(part) > 1 else begin + 1
        found = lines[begin:at]
        if len(part) == 1 and part[0].endswith(DOTS):
            found = [found[0][: len(part[0]) - len(DOTS)].rstrip() + " " + DOTS]
        new += found
    return "".join(f"{line}\n" for line in new)


def parts(lines: list[str]) -> Iterator[list[str]]:
    """Lines that follow each other; lines of dots, and lines that end in dots, stand alone."""
    part: list[str] = []
    for line in lines:
        if line.endswith(DOTS):
            yield from filter(None, (part, [line]))
            part = []
        else:
            part.append(line)
    yield from filter(None, (part,))


def nearest(line: str, lines: list[str], begin: int, expected: int) -> int:
    """Where the line most like this one is, its numbers aside; of lines that are alike, the one about as far down."""
    wanted = masked(line)
    places = range(min(begin, len(lines) - 1), len(lines))
    return max(places, key=lambda i: likeness(wanted, masked(lines[i])) - 0.01 * abs(i - expected))


def masked(line: str) -> str:
    """A line without its numbers and spaces."""
    return re.sub(r"\d[\d,.]*", "#", " ".join(line.removesuffix(DOTS).split()))


def likeness(wanted: str, line: str) -> float:
    """How much of a line is as wanted, where it may have been cut short."""
    return max(SequenceMatcher(None, wanted, each, autojunk=False).ratio() for each in {line, line[: len(wanted)]})


def renew(page: Path) -> None:
    """Run a page and write it again."""
    text, outputs = page.read_text(encoding="utf-8"), []

    def compare(shown: str, said: str) -> str | None:
        if missing(shown, said) is not None:
            outputs.append((shown, renewed(shown, said)))
        return None

    missing, docs_pages.missing_line = docs_pages.missing_line, compare
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        sys.path.insert(0, folder)
        try:
            docs_runs.run_page(page)
        finally:
            os.chdir(here)
            sys.path.remove(folder)
            docs_pages.missing_line = missing
    for shown, now in outputs:
        text = text.replace(f"```text\n{shown}```", f"```text\n{now}```")
    page.write_text(text, encoding="utf-8")
    print(f"{page.name}: {len(outputs)} outputs renewed")


if __name__ == "__main__":
    for each in map(Path, sys.argv[1:]) if sys.argv[1:] else filter(docs_pages.runnable, docs_pages.pages()):
        renew(each.resolve())
