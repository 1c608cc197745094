"""A picture of a page, taken by an installed browser.

Plotly's own PNG export downloads a browser, which an operator's machine may not be allowed to do.
"""

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from fedcoast.errors import BadFile, MissingExtra

VARIABLE = "FEDCOAST_BROWSER"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
_QUIET = [
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--virtual-time-budget=30000",
]


def screenshot(html: str, width: int = 1200) -> bytes:
    """The whole of a page as PNG; the page says how tall it is in `data-height`, once it has drawn itself."""
    with tempfile.TemporaryDirectory(prefix="fedcoast-") as place:
        file, picture = Path(place) / "page.html", Path(place) / "page.png"
        file.write_text(html, encoding="utf-8")
        page = _run(place, f"--window-size={width},800", "--dump-dom", file.as_uri())
        height = re.search(r'<html[^>]* data-height="(\d+)"', page[:2000])
        if height is None:
            raise BadFile("the browser did not draw the page; try another one, named in FEDCOAST_BROWSER")
        _run(place, f"--window-size={width},{height[1]}", f"--screenshot={picture}", file.as_uri())
        if not picture.is_file():
            raise BadFile("the browser took no picture; try another one, named in FEDCOAST_BROWSER")
        return picture.read_bytes()


def browser() -> str:
    """The browser to use: the one in the environment, or the first that is found."""
    named = os.environ.get(VARIABLE)
    found = shutil.which(named) if named else next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        reason = f"{VARIABLE}={named} names no program" if named else f"looked for {', '.join(BROWSERS)}"
        raise MissingExtra(
            f"a PNG needs Chromium or a relative of it ({reason}). Install one (apt install chromium), or name it in"
            f" {VARIABLE}; or write the report as html, md, csv or json, which need none"
        )
    return found


def _run(place: str, *options: str) -> str:
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []  # it refuses root otherwise
    command = [browser(), *_QUIET, *sandbox, f"--user-data-dir={place}/profile", *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=120, check=True)
    except subprocess.TimeoutExpired:
        raise BadFile(f"{command[0]} took more than two minutes to draw the page and was stopped") from None
    except (OSError, subprocess.CalledProcessError) as error:
        raise BadFile(
            f"{command[0]} could not draw the page ({error}); try another one, named in {VARIABLE}"
        ) from error
    return done.stdout
