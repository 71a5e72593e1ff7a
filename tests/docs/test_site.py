"""The site builds without a warning, and nothing on it is loaded from elsewhere."""

import re
import shutil
import subprocess
import sys
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import docs_pages
import pytest

pytest.importorskip("zensical", reason="the site is built with zensical, of the group docs")
pytestmark = pytest.mark.slow

LOADS = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
ELSEWHERE = re.compile(r"^(\w+:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built from a copy so that nothing is left in the tree."""
    place = tmp_path_factory.mktemp("site")
    shutil.copytree(docs_pages.DOCS, place / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    (place / "benchmarks").mkdir()
    for name in ("zensical.toml", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md"):
        shutil.copy(docs_pages.ROOT / name, place / name)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"], cwd=place, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert "No issues found" in built.stdout + built.stderr
    return place / "site"


class Page(HTMLParser):
    """What a page loads, and where it links to."""

    def __init__(self, path):
        super().__init__()
        self.loads, self.links, self.anchors = [], [], set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if given.get("id"):
            self.anchors.add(given["id"])
        if tag in LOADS and given.get(LOADS[tag]) and given.get("rel") not in ("next", "prev", "canonical"):
            self.loads.append(given[LOADS[tag]])
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])


@pytest.fixture(scope="module")
def pages(site):
    return {path: Page(path) for path in site.rglob("*.html")}


def test_there_is_a_page_for_every_source(site):
    for path in docs_pages.pages():
        page = path.relative_to(docs_pages.DOCS).with_suffix(".html")
        place = page.with_name("index.html") if page.name == "README.html" else page
        assert (site / place).exists(), place


def test_sources_that_are_not_pages_stay_at_home(site):
    assert not list(site.rglob("*.py"))
    assert not list(site.rglob("*preface*"))


def test_nothing_is_loaded_from_elsewhere(site, pages):
    for path, page in pages.items():
        away = [place for place in page.loads if ELSEWHERE.match(place)]
        assert not away, f"{path.name} loads {away}"
    for style in site.rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", style.read_text(encoding="utf-8")), style


def test_everything_that_is_loaded_or_linked_is_there(pages):
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for place in (*page.loads, *page.links):
            target, _, anchor = place.partition("#")
            if ELSEWHERE.match(place) or place.startswith(("data:", "mailto:", "javascript:")):
                continue
            there = (path.parent / target).resolve() if target else path
            there = there / "index.html" if there.is_dir() else there
            assert there.exists(), f"{path.name} needs {place}"
            if anchor and there in pages and not anchor.startswith("__"):
                assert anchor in pages[there].anchors, f"{path.name} links to {place}"


@pytest.fixture
def served(site):
    """The site on this machine, for whoever asks."""
    handler = partial(SilentHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class SilentHandler(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        pass


def test_a_browser_asks_nobody_else_for_anything(served, tmp_path):
    sys.path.insert(0, str(docs_pages.ROOT / "tests" / "report"))
    import browser

    if browser.CHROMIUM is None:
        pytest.skip("there is no Chromium")
    page = browser.Browser(tmp_path)
    try:
        for name in ("index.html", "tutorial.html"):
            before = page.loaded
            page.send("Page.navigate", url=f"{served}/{name}")
            while page.loaded == before:
                page._next()
            assert page.js("document.querySelector('h1').textContent")
            assert [place for place in page.requests if not place.startswith((served, "data:", "about:"))] == []
            assert page.console == []
    finally:
        page.close()
