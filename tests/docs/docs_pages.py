"""Reading documentation pages: their blocks of code, what is to be done with each, and what it should say.

A block in ``python`` or ``sh`` is run, all blocks of a page in one folder and one namespace, from top to bottom. A
block of any kind with ``title="name"`` is a file that is written there. A ``text`` block right after one that
was run is what it says: each line must occur, in this order, apart from spaces; ``...`` is what is left out. A
comment before a block changes that: ``<!-- not run: REASON -->``, or ``<!-- exits with 2 -->`` where that is meant.

Commands that are not run, those in a sentence, and those in indented blocks are still held to what there is:
``calls`` finds them.
"""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FENCE = re.compile(
    r"^(?:<!-- (?P<note>[^\n]+) -->\n+)?```(?P<kind>\w*)(?P<rest>[^\n]*)\n(?P<code>.*?)^```$", re.M | re.S
)
RUN = ("python", "sh")
SHOWN = ("text", "csv", "py", "pycon", "dockerfile")  # output, files, signatures, docstrings that doctest runs, recipes
PROGRAMS = ("certeq", "dask")
ENDS = ("&", "&&", "|", ";", ">")


class Block(NamedTuple):
    kind: str
    code: str
    file: str | None  # to be written, instead of run
    skip: str | None  # why it is not run
    exits: int  # with what a command should end
    line: int
    follows: bool  # nothing but empty lines since the block before


def pages():
    """Every page of the site."""
    return sorted(path for path in DOCS.rglob("*.md") if not path.name.endswith("-preface.md"))


def everything():
    """Every page of the site, and what stands beside it."""
    return [*pages(), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md"))]


def name_of(path):
    return str(path.relative_to(ROOT))


def blocks(path):
    text, end, found = path.read_text(encoding="utf-8"), 0, []
    for each in FENCE.finditer(text):
        note, title = each["note"] or "", re.search(r'title="([^"]+)"', each["rest"])
        skip, exits = re.match(r"not run: (.+)", note), re.match(r"exits with (\d+)", note)
        found.append(
            Block(
                each["kind"],
                each["code"],
                title and title[1],
                skip and skip[1],
                int(exits[1]) if exits else 0,
                text[: each.start("kind")].count("\n") + 1,
                bool(found) and not text[end : each.start()].strip(),
            )
        )
        end = each.end()
    return found


def runnable(path):
    return any(block.kind in RUN and not block.skip for block in blocks(path))


def commands(code):
    """Lines of a shell block, continued lines joined, comments left out."""
    joined = re.sub(r"\\\n\s*", " ", code)
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def indented(path):
    """Blocks of code that are set off by spaces alone."""
    rest = FENCE.sub("", path.read_text(encoding="utf-8"))
    found = re.findall(r"(?<=\n\n) {4}.*\n(?:\n* {4}.*\n)*", rest)
    return [re.sub(r"^ {4}", "", part, flags=re.M) for part in found]


def spans(path):
    """Code within sentences."""
    rest = FENCE.sub("", path.read_text(encoding="utf-8"))
    return [" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", rest)]


def calls(code):
    """Words of each call of certeq or dask in shell code, also inside quotes, with its variables filled in."""
    found, known = [], {}
    for line in commands(code):
        for name, value in known.items():
            line = re.sub(rf"\${name}\b", lambda _, value=value: value, line)
        known |= re.findall(r"^(\w+)=\"([^\"]*)\"", line)
        if any(program in line for program in PROGRAMS):
            found += _calls_of(shlex.split(line, comments=True))
    return found


def _calls_of(words):
    found = [call for word in words if " " in word for call in _calls_of(shlex.split(word))]
    for start, word in enumerate(words):
        if word in PROGRAMS and (start == 0 or words[start - 1] in ("run", "srun", "do", *ENDS)):
            rest = words[start:]
            found.append(rest[: next((i for i, each in enumerate(rest) if each in ENDS), len(rest))])
    return found


def missing_line(expected, said):
    """The first line of an expected output that was not said, or None."""
    lines = iter([" ".join(line.split()) for line in said.splitlines()])
    for line in expected.splitlines():
        wanted = " ".join(line.split())
        if wanted in ("", "..."):
            continue
        start = wanted.removesuffix("...").rstrip()
        if not any(each.startswith(start) if start != wanted else each == wanted for each in lines):
            return line
    return None
