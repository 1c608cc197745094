"""Debian's Chromium, driven by Playwright; whatever it complains about fails the test."""

import pytest

from fedcoast.reports.browser import browser

OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def chromium():
    from playwright.sync_api import sync_playwright  # here: the fast tests do without it

    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=browser(), args=list(OPTIONS))
        yield opened
        opened.close()


@pytest.fixture
def visit(chromium):
    """Opens a page in a window of its own: `visit(address, offline=True, color_scheme="dark", …)`."""
    contexts = []

    def open_page(address, offline=True, **options):
        context = chromium.new_context(offline=offline, **{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.complaints, page.requests = [], []
        page.on("console", lambda m: page.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (page.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: page.requests.append(request.url))
        page.goto(address)
        return page

    yield open_page
    for context in contexts:
        context.close()
