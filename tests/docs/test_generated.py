"""Pages that are made by a script are what the script would make now."""

import importlib
import sys

import docs_pages
import pytest

import certeq

MAKERS = ("make_api", "make_reference", "make_layers", "make_notebooks", "make_outside")


@pytest.fixture(scope="module", params=MAKERS)
def maker(request):
    sys.path.insert(0, str(docs_pages.DOCS))
    try:
        return importlib.import_module(request.param)
    finally:
        sys.path.remove(str(docs_pages.DOCS))


@pytest.mark.slow
def test_what_is_kept_is_what_would_be_made(maker):
    for path, text in maker.made().items():
        remedy = f"run: uv run python docs/{maker.__name__}.py"
        assert path.exists(), remedy
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is out of date; {remedy}"


def test_every_public_name_is_in_the_reference():
    pages = "".join(path.read_text(encoding="utf-8") for path in (docs_pages.DOCS / "reference").glob("api-*.md"))
    for name in certeq.__all__:
        assert f"certeq.{name}" in pages
