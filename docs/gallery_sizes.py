"""Pictures of the first screen for 3, 50 and 300 clients: `python docs/gallery_sizes.py`. The scores are invented.

Needs fedcoast[report], playwright and pillow, and Chromium on the machine.
"""

import io
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from fedcoast import Assessment
from fedcoast.reports.assess_rounds import build_report
from fedcoast.reports.browser import browser
from fedcoast.reports.page import page
from fedcoast.reports.report_data import ReportData

IMAGES = Path(__file__).parent / "images"
ROUNDS = 40
DESKTOP, PHONE, PAPER = (1280, 800), (390, 844), (690, 976)  # paper: A4 without its margins
THREE = ("Charité Berlin", "Oslo University Hospital", "Nairobi West")
GREY, GAP = "#9aa3b2", 16


def main() -> None:
    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox", "--disable-gpu"])
        files = {}
        for count in (3, 50, 300):
            files[count] = Path(place) / f"{count}.html"
            files[count].write_text(page(invented(count)), encoding="utf-8")
        for size, name, height in ((DESKTOP, "desktop", 400), (PHONE, "phone", 720)):
            rows = [[shot(chromium, files[n], size, scheme) for n in files] for scheme in ("light", "dark")]
            contact_sheet(rows, f"report-sizes-{name}.png", height)
        printed = [shot(chromium, files[n], PAPER, "dark", media="print") for n in files]
        contact_sheet([printed], "report-sizes-print.png", 800)
        chromium.close()


def invented(count: int) -> ReportData:
    """Clients from good to harmful with luck in every round; of more than three, the one in the middle is idle."""
    rng = np.random.default_rng(1)
    names = THREE if count == 3 else tuple(f"hospital {number:03d}" for number in range(1, count + 1))
    worth = (80, 30, -40) if count == 3 else np.linspace(90, -10, count)
    credits = {
        number: {name: float(own + 25 * rng.normal()) for name, own in zip(names, worth, strict=True)}
        for number in range(1, ROUNDS + 1)
    }
    idle = names[count // 2] if count > 3 else None
    if idle is not None:
        credits = {number: {**of, idle: 0.0} for number, of in credits.items()}
    assessment = Assessment(
        "coast",
        {name: sum(of[name] for of in credits.values()) for name in names},
        credits,
        rounds_scored=dict.fromkeys(names, ROUNDS),
        zero_is_idle=True,
        unchanged={} if idle is None else dict.fromkeys(credits, (idle,)),
    )
    accuracy = {number: 0.95 - 0.6 * 0.85**number for number in credits}
    return build_report(assessment, title="Chest X-rays, autumn", accuracy=accuracy, budget="100000")


def shot(chromium: Browser, file: Path, size: tuple[int, int], scheme: str, media: str = "screen") -> Image.Image:
    context = chromium.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    shown = context.new_page()
    shown.goto(file.as_uri())
    if media == "print":
        shown.wait_for_selector("#figure-ranking[data-drawn]")
        shown.emulate_media(media="print")
        shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    shown.wait_for_timeout(1800)
    picture = Image.open(io.BytesIO(shown.screenshot()))
    context.close()
    return picture


def contact_sheet(rows: list[list[Image.Image]], name: str, height: int) -> None:
    """Rows of pictures side by side, in as many colours as a page of text and lines needs."""
    width = rows[0][0].width * height // rows[0][0].height
    size = len(rows[0]) * (width + GAP) - GAP, len(rows) * (height + GAP) - GAP
    whole = Image.new("RGB", size, GREY)
    for down, row in enumerate(rows):
        for across, one in enumerate(row):
            scaled = one.convert("RGB").resize((width, height), Image.LANCZOS)
            whole.paste(scaled, (across * (width + GAP), down * (height + GAP)))
    whole.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)
    print(name, (IMAGES / name).stat().st_size)


if __name__ == "__main__":
    main()
