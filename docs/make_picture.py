"""Make docs/images/report.png: the top of the report on the bundled trial, as a browser shows it. Needs Chromium.

``python docs/make_picture.py`` learns with three bins, as the tutorial does. Beside it, images/origin.svg shows where
one row of that policy comes from, and what the gallery's examples draw is kept; ``python docs/make_picture.py origin``
and ``python docs/make_picture.py gallery`` make these alone, without a browser.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import sys
import tempfile
from pathlib import Path

from certeq import examine, learn, read
from certeq.questions.origin import origin
from certeq.report import pictures
from certeq.report.learned_page import render
from certeq.worlds import examples

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / room) for room in ("report", "docs")]
WIDTH, HEIGHT = 1120, 1000


def main() -> None:
    """Learn, write the page, and take the pictures."""
    if sys.argv[1:] != ["origin"]:
        gallery()
    if sys.argv[1:] == ["gallery"]:
        return
    learned = learn(read(examples.path(), bins=3))
    (HERE / "images" / "origin.svg").write_bytes(pictures.to_svg(pictures.origin(origin(learned))))
    if sys.argv[1:] == ["origin"]:
        return
    from browser import Browser

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(render(examine(learned)), encoding="utf-8")
        browser = Browser(Path(folder) / "browser")
        try:
            browser.size(WIDTH, HEIGHT)
            browser.open(page)
            picture = browser.send("Page.captureScreenshot", format="png")["data"]
        finally:
            browser.close()
    (HERE / "images" / "report.png").write_bytes(base64.b64decode(picture))


def gallery() -> None:
    """Run each example of the gallery by itself, and keep the pictures that they save."""
    import docs_pages
    import docs_runs

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for block in docs_pages.blocks(HERE / "gallery.md"):
            if block.kind == "python":
                docs_runs.run_python(block, {"__name__": "__main__"}, f"gallery.md, line {block.line}")
        for picture in Path(folder).glob("*.svg"):
            shutil.copy(picture, HERE / "images")


if __name__ == "__main__":
    main()
