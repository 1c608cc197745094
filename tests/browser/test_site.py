"""The documentation site as a reader without a network meets it: built strictly, opened from disk, searched."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    run = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore::DeprecationWarning"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr == "", "the build has nothing to warn about"
    return folder


def test_every_page_opens_offline_and_asks_nobody_for_anything(site, visit):
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")  # that one is for web servers
    assert len(pages) > 30
    page = visit((site / "index.html").as_uri())
    for path in pages:
        page.goto(path.as_uri(), wait_until="load")
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert [words for words in page.complaints if "Unsafe attempt" not in words] == []


def test_no_page_is_wider_than_a_phone(site, visit):
    page = visit((site / "index.html").as_uri(), viewport={"width": 390, "height": 844})
    pages = [path for path in site.rglob("*.html") if path.name != "404.html"]
    widths = {}
    for path in pages:
        page.goto(path.as_uri(), wait_until="load")
        widths[path.name] = page.evaluate("document.documentElement.scrollWidth")
    assert {name: width for name, width in widths.items() if width > 390} == {}


def test_no_page_names_a_foreign_script_style_or_picture(site):
    for path in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|img|link)[^>]+(?:src|href)=\"?(https?:[^\" >]+)", path.read_text("utf-8"))
        assert loaded == [], path.name


@pytest.mark.parametrize(("words", "wanted"), [("quarantine", "Glossary"), ("temperature", "Command line")])
def test_the_search_finds_words_offline(site, visit, words, wanted):
    page = visit((site / "index.html").as_uri())
    page.click("input.md-search__input")
    page.keyboard.type(words)
    page.wait_for_selector(".md-search-result__item")
    found = " ".join(page.locator(".md-search-result__item").all_text_contents())
    assert wanted in found
