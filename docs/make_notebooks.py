"""Make docs/notebooks/*.md and *.ipynb of the scripts in notebooks/, the one source of both.

A script is in the percent format that notebooks and editors know: ``# %% [markdown]`` begins words, ``# %%`` code. For
the page it is run cell by cell, and words, code, output and pictures are put down; if a cell ends with an expression,
its value is shown. The notebook has the same cells, without outputs. ``python docs/make_notebooks.py`` writes them;
tests/docs/test_generated.py says when words or code are out of date, and tests/docs/test_notebooks.py runs both forms
at a small scale.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
SCRIPTS = sorted((HERE.parent / "notebooks").glob("*.py"))
PAGES = HERE / "notebooks"
OUTPUT = re.compile(r"\n*<!-- output -->\n.*?<!-- end -->", re.S)


class Cell(NamedTuple):
    """Words or code."""

    code: bool
    text: str


def cells(script: Path) -> list[Cell]:
    """Cut a script into its cells."""
    parts = re.split(r"^# %%(.*)\n", script.read_text(encoding="utf-8"), flags=re.M)[1:]
    found = []
    for kind, body in zip(parts[::2], parts[1::2], strict=True):
        code = "[markdown]" not in kind
        text = body.strip("\n") if code else re.sub(r"^# ?", "", body, flags=re.M).strip()
        found.append(Cell(code, text))
    return found


def run(script: Path, **settings: Any) -> list[tuple[Cell, str, Any]]:
    """Run the cells in one namespace: each with what it printed and what its last expression gave.

    ``settings`` replace variables of the same names that the first code cell sets.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    done, first = [], True
    for cell in cells(script):
        printed, value = io.StringIO(), None
        if cell.code:
            body = ast.parse(cell.text).body
            last = ast.Expression(body.pop().value) if isinstance(body[-1], ast.Expr) else None  # type: ignore[attr-defined]
            with contextlib.redirect_stdout(printed):
                exec(compile(ast.Module(body, []), script.name, "exec"), names)
                value = None if last is None else eval(compile(last, script.name, "eval"), names)
            if first:
                unknown = set(settings) - set(names)
                if unknown:
                    raise SystemExit(f"{script.name} has no setting {unknown}")
                names |= settings
                first = False
        done.append((cell, printed.getvalue(), value))
    return done


def made(*, again: bool = False) -> dict[Path, str]:
    """Pages and notebooks; with ``again`` everything is run, otherwise outputs are those that the pages have now."""
    pages = {PAGES / f"{script.stem}.md": _run_page(script) if again else _kept_page(script) for script in SCRIPTS}
    return pages | {PAGES / f"{script.stem}.ipynb": notebook(script) for script in SCRIPTS}


def notebook(script: Path) -> str:
    """The cells as a notebook, in Jupyter's own form; one cell more lets it show pictures."""
    parts = [Cell(code=True, text="%matplotlib inline"), *cells(script)]
    told = [
        {"cell_type": "code" if part.code else "markdown", "id": f"cell-{number}", "metadata": {}}
        | ({"execution_count": None, "outputs": []} if part.code else {})
        | {"source": part.text.splitlines(keepends=True)}
        for number, part in enumerate(parts)
    ]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    form = {"cells": told, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(form, indent=1, ensure_ascii=False) + "\n"


def _start(script: Path) -> str:
    return f"<!-- made by docs/make_notebooks.py from notebooks/{script.name}; edit that instead -->"


def _source(script: Path) -> str:
    return f"*This page was made by running `notebooks/{script.name}`. [The same as a notebook]({script.stem}.ipynb).*"


def _words(cell: Cell) -> str:
    return f"```py\n{cell.text}\n```" if cell.code else cell.text


def _run_page(script: Path) -> str:
    parts, drawn = [_start(script)], 0
    for cell, printed, value in run(script):
        parts.append(_words(cell))
        shown = [f"```text\n{printed.rstrip()}\n```"] if printed else []
        if hasattr(value, "savefig"):
            drawn += 1
            name = f"{script.stem}-{drawn}.svg"
            (PAGES / name).write_bytes(_svg(value))
            shown.append(f"![{_alt(cell)}]({name})")
        elif value is not None:
            shown.append(f"```text\n{value!r}\n```")
        if shown:
            parts.append("<!-- output -->\n" + "\n\n".join(shown) + "\n<!-- end -->")
    return "\n\n".join([*parts, _source(script)]) + "\n"


def _kept_page(script: Path) -> str:
    """The page as it would be with the outputs that it has: cell by cell, outputs stay where the cell is unchanged."""
    kept = (PAGES / f"{script.stem}.md").read_text(encoding="utf-8")
    parts = [_start(script)]
    for cell in cells(script):
        text = _words(cell)
        parts.append(text)
        if cell.code and text in kept:
            output = OUTPUT.match(kept, kept.index(text) + len(text))
            if output:
                parts.append(output[0].strip())
    return "\n\n".join([*parts, _source(script)]) + "\n"


def _alt(cell: Cell) -> str:
    """What a picture shows: the comment in the last line of its cell."""
    _, _, words = cell.text.rpartition("# ")
    return words.strip()


def _svg(figure: Any) -> bytes:
    from certeq.report.style import to_svg

    return to_svg(figure)


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for path, text in made(again=True).items():
        path.write_text(text, encoding="utf-8")
