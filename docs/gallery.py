"""Takes the pictures of docs/gallery.md, from a federation that it trains: `python docs/gallery.py`.

Needs fedcoast[lab,report], playwright and pillow, and Chromium on the machine. Eight clients learn to read digits
(scikit-learn's), each with noisier images than the one before; some are absent at times, one sends nonsense once.
"""

import io
import re
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

from fedcoast import METHODS, Recorder, replay
from fedcoast.reports.assess_rounds import assess_rounds
from fedcoast.reports.browser import browser
from fedcoast.reports.following import RunFollower
from fedcoast.reports.forms import write
from fedcoast.reports.live import serve
from fedcoast.reports.terminal import screen
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.presets import preset

IMAGES = Path(__file__).parent / "images"
SITES = ("Berlin", "Oslo", "Nairobi", "Lima", "القاهرة", "Osaka", "Quito", "Ürümqi & Sons")
ROUNDS = 40
DESKTOP = {"viewport": {"width": 1280, "height": 1000}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2}
PORT = 8479


def main() -> None:
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        run, report = Path(place) / "digits", Path(place) / "report.html"
        recorder, rounds = Recorder(run), federation()
        for _ in range(ROUNDS - 2):
            recorder.observe(next(rounds))
        others = {name: METHODS[name].make() for name in ("cosine", "cgsv", "norm")}
        write(assess_rounds(replay(run), None, others, title="Reading digits", budget="100000"), report)
        chromium = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox", "--disable-gpu"])
        take_report(chromium, report.as_uri())
        take_live(chromium, run, recorder, rounds)
        take_terminal(run)
        chromium.close()
    for picture in sorted(IMAGES.glob("report-*")):
        print(picture.name, picture.stat().st_size)


def federation():
    """The rounds of the federation, with names for its clients and a few mishaps."""
    experiment = preset("quick", "digits", "mlp", setting="noise", clients=len(SITES), rounds=ROUNDS, seed=0)
    for round in Federation(experiment):
        away = {client for client in round.local if client > 2 and (round.number + client) % 9 == 0}
        there = {SITES[client]: model for client, model in round.local.items() if client not in away}
        if round.number == 17:
            there["Quito"] = {name: array * np.nan for name, array in there["Quito"].items()}
        yield replace(round, local=there, weights=None)


def take_report(chromium: Browser, address: str) -> None:
    page = opened(chromium, address, **DESKTOP)
    keep(page.screenshot(), "report-light.png")
    keep(shot_from(page, "#timeline", 1000), "report-timeline.png")
    page = opened(chromium, address, color_scheme="dark", **DESKTOP)
    keep(shot_from(page, "#heat-map", 1500), "report-dark.png")
    phones = []
    for scheme, anchor in (("light", "body"), ("light", "#ranking"), ("dark", "#above")):
        phones.append(shot_from(opened(chromium, address, color_scheme=scheme, **PHONE), anchor, 844))
    keep(side_by_side(phones), "report-phone.png")


def take_live(chromium: Browser, run: Path, recorder: Recorder, rounds) -> None:
    follower = RunFollower(run, title="Reading digits")
    threading.Thread(target=serve, args=(follower,), kwargs={"port": PORT}, daemon=True).start()
    time.sleep(3)
    page = opened(chromium, f"http://127.0.0.1:{PORT}/", color_scheme="dark", **DESKTOP)
    for round in rounds:
        recorder.observe(round)
    recorder.close()
    page.locator("#live", has_text=f"round {ROUNDS}").wait_for()
    page.wait_for_timeout(2000)
    keep(page.screenshot(clip={"x": 0, "y": 0, "width": 1280, "height": 800}), "report-live.png")
    phones = [opened(chromium, f"http://127.0.0.1:{PORT}/", color_scheme=of, **PHONE) for of in ("light", "dark")]
    keep(side_by_side([phone.screenshot() for phone in phones]), "report-live-phone.png")


def take_terminal(run: Path) -> None:
    follower = RunFollower(run, title="Reading digits")
    follower.catch_up()
    console = Console(record=True, width=116, file=io.StringIO(), force_terminal=True)
    console.print("[bold]$[/bold] fedcoast watch runs/digits")
    console.print(screen(follower, console.width))
    without_fonts = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)  # they would be fetched
    (IMAGES / "report-terminal.svg").write_text(
        console.export_svg(title="fedcoast watch", code_format=without_fonts), encoding="utf-8"
    )


def opened(chromium: Browser, address: str, **options) -> Page:
    page = chromium.new_context(**options).new_page()
    page.goto(address)
    for figure in page.locator("[data-figure]").all():  # each is drawn when it comes near
        figure.scroll_into_view_if_needed()
        page.wait_for_selector(f"#{figure.get_attribute('id')}[data-drawn]", timeout=60_000)
    page.evaluate("scrollTo({top: 0, behavior: 'instant'})")
    page.wait_for_timeout(300)
    return page


def shot_from(page: Page, anchor: str, height: int) -> bytes:
    top = page.locator(anchor).bounding_box()["y"]
    clip = {"x": 0, "y": top, "width": page.viewport_size["width"], "height": height}
    return page.screenshot(full_page=True, clip=clip)


def side_by_side(pictures: list[bytes]) -> bytes:
    opened = [Image.open(io.BytesIO(picture)) for picture in pictures]
    width, height, gap = opened[0].width, opened[0].height, 24
    picture = Image.new("RGB", ((width + gap) * len(opened) - gap, height), "#9aa3b2")
    for place, one in enumerate(opened):
        picture.paste(one, (place * (width + gap), 0))
    out = io.BytesIO()
    picture.resize((picture.width * 5 // 9, picture.height * 5 // 9), Image.Resampling.LANCZOS).save(out, "PNG")
    return out.getvalue()


def keep(picture: bytes, name: str) -> None:
    """In as many colours as a page of text and lines needs."""
    drawn = (
        Image.open(io.BytesIO(picture))
        .convert("RGB")
        .quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )
    drawn.save(IMAGES / name, optimize=True)


if __name__ == "__main__":
    main()
