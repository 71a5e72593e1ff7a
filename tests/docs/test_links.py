"""Every link, picture and name in the documentation leads somewhere, and every page can be reached."""

import re
import tomllib
from functools import cache
from pkgutil import resolve_name

import docs_pages
import pytest

ROOT, DOCS = docs_pages.ROOT, docs_pages.DOCS
PAGES = docs_pages.everything()
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)\)")
NAMED = re.compile(r"\]\[([^\]]+)\]")
DEFINED = re.compile(r"^\[([^\]]+)\]: (\S+)$", re.M)
INCLUDED = re.compile(r'^--8<-- "([^":]+)(?::(\w+))?"$', re.M)


@cache
def words(path):
    """A page without its blocks of code, and with what it includes."""
    text = path.read_text(encoding="utf-8")
    for name, section in INCLUDED.findall(text):
        other = (ROOT / name).read_text(encoding="utf-8")
        if section:
            other = other.split(f"[start:{section}] -->")[1].split("<!-- --8<--")[0]
        text = text.replace(f'--8<-- "{name}{":" if section else ""}{section}"', other)
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


@cache
def anchors(path):
    """Anchors of a page's headings, as Markdown makes them."""
    found = []
    for heading in re.findall(r"^#+ (.+)$", words(path), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)|[`*\\]", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        found.append(slug)
    return set(found)


def links(path):
    text = words(path)
    defined = dict(DEFINED.findall(text))
    inline = re.sub(r"`[^`\n]*`", "", text)
    for name in NAMED.findall(inline):
        assert name in defined, f"{docs_pages.name_of(path)} has no definition of [{name}]"
    return [*LINK.findall(inline), *defined.values()]


@pytest.mark.parametrize("page", PAGES, ids=docs_pages.name_of)
def test_every_link_leads_to_a_file_and_a_heading(page):
    for link in links(page):
        if re.match(r"https?://|mailto:", link):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{docs_pages.name_of(page)} links to {link}, which is not there"
        if page.is_relative_to(DOCS) and path.suffix == ".md":
            assert path.is_relative_to(DOCS), f"{docs_pages.name_of(page)} links to {link}, which is not on the site"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), (
                f"{docs_pages.name_of(page)} links to {link}; its headings are {sorted(anchors(path))}"
            )


def listed(nav):
    for entry in nav:
        for value in entry.values():
            yield from [value] if isinstance(value, str) else listed(value)


def test_every_page_is_in_the_navigation_once():
    site = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]
    found = list(listed(site["nav"]))
    assert len(found) == len(set(found))
    assert set(found) == {str(path.relative_to(DOCS)) for path in docs_pages.pages()}


def test_every_picture_that_is_kept_is_shown():
    kept = {path for folder in ("images", "notebooks") for path in (DOCS / folder).iterdir() if path.suffix != ".md"}
    shown = {(page.parent / link).resolve() for page in PAGES for link in links(page) if "://" not in link}
    assert kept <= shown


def test_every_decision_is_in_the_list():
    text = (DOCS / "decisions" / "README.md").read_text(encoding="utf-8")
    for path in (DOCS / "decisions").glob("0*.md"):
        assert f"({path.name})" in text


def test_every_name_that_pages_and_docstrings_cite_is_there():
    files = [*PAGES, *(ROOT / "src").rglob("*.py")]
    cited = {name for path in files for name in re.findall(r"`(certeq(?:\.\w+)+)", path.read_text(encoding="utf-8"))}
    assert len(cited) > 60
    for name in sorted(cited):
        resolve_name(name)  # raises where there is no such thing
