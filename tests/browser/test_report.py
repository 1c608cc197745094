"""The report, in a real browser, from disk, without a network."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from fedcoast import Recorder
from fedcoast.methods import Cosine
from fedcoast.reports import phrasing
from fedcoast.reports.assess_rounds import assess_rounds, build_report
from fedcoast.reports.forms import write
from fedcoast.reports.many_runs import list_page
from fedcoast.reports.page import page as to_page
from fedcoast.reports.plots import FIGURES
from federations import federation, with_upload
from report_samples import MADE, RIGHT_TO_LEFT, SCRIPT, clear, large, nasty

pytestmark = pytest.mark.slow

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True, "device_scale_factor": 2}


@pytest.fixture(scope="module")
def record():
    rounds = federation(rounds=30, clients=("ann", "bob", "cid", "dan"))
    rounds = [replace(fl_round, metrics={"test accuracy": 1 - 1 / fl_round.number}) for fl_round in rounds]
    bad = {name: array * np.nan for name, array in rounds[2].local["bob"].items()}
    rounds[2] = with_upload(rounds[2], "bob", bad)
    return assess_rounds(rounds, None, {"cosine": Cosine()}, title="small", budget="1000", made=MADE)


@pytest.fixture(scope="module")
def report(record, tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    write(record, file)
    return file.as_uri()


def drawn(page, *names):
    """Wait until these figures are drawn, the ranking if none is named; each is drawn when it comes near."""
    for name in names or ("ranking",):
        page.locator(f"#figure-{name}").scroll_into_view_if_needed()
        page.wait_for_selector(f"#figure-{name}[data-drawn]", timeout=60_000)
    return page


def names(page):
    return page.locator("#ranking-table tbody tr:visible th bdi").all_inner_texts()


def column(page, head):
    heads = page.locator("#ranking-table thead th").all_inner_texts()
    place = next(at for at, text in enumerate(heads) if text.strip(" ▲▼") == head)
    return page.locator(f"#ranking-table tbody tr:visible > :nth-child({place + 1})").all_inner_texts()


def number(text):
    return float(text.replace("−", "-").replace(",", "").replace("%", ""))


def test_the_report_opens_from_disk_without_a_network_and_without_a_complaint(visit, report):
    page = drawn(visit(report), *FIGURES)
    assert page.requests == [report]
    assert page.complaints == []


def test_the_right_numbers_are_in_the_right_order(visit, report, record):
    page = visit(report)
    assert names(page) == list(record.assessment.ranking)
    assert column(page, "score") == [phrasing.number(s.score) for s in record.summaries]
    lead, *_ = phrasing.findings(record)
    assert [int(text) for text in column(page, "rank")] == [s.rank for s in record.summaries]
    assert page.locator(".lead").inner_text().startswith("".join(getattr(part, "name", part) for part in lead))
    drawn(page)
    labels = page.locator("#figure-ranking .ytick text").all_text_contents()
    assert labels == list(record.assessment.ranking)
    points = page.locator("#figure-ranking").evaluate("e => e.data.flatMap(t => t.x.map((x, i) => [t.y[i], x]))")
    assert [x for _, x in sorted(points)] == [s.score for s in record.summaries]


def test_every_plot_draws(visit, report):
    page = visit(report)
    for name in FIGURES:
        figure = drawn(page, name).locator(f"#figure-{name}")
        marks = figure.locator(".point, .js-line, .heatmaplayer image, .bars path")
        assert marks.count() >= 1, name
        box = figure.locator(".main-svg").first.bounding_box()
        assert box["width"] > 300, name
        assert box["height"] > 100, name


def test_hovering_shows_the_numbers(visit, report, record):
    page = drawn(visit(report))
    best = record.summaries[0]
    page.locator("#figure-ranking").scroll_into_view_if_needed()
    point = page.locator("#figure-ranking .scatterlayer .point").first.bounding_box()
    page.mouse.move(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    hover = page.locator("#figure-ranking .hoverlayer .hovertext")
    hover.wait_for()
    text = hover.text_content()
    assert best.name in text
    assert f"score {best.score:.4g}" in text
    drawn(page, "heat-map")
    box = page.locator("#figure-heat-map .heatmaplayer image").bounding_box()
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    hover = page.locator("#figure-heat-map .hoverlayer .hovertext")
    hover.wait_for()
    assert hover.text_content().startswith(f"{best.name}round 1: {record.credits[0, 0]:.4g}")


def test_sorting_works_by_mouse_and_by_keyboard(visit, report, record):
    page = visit(report)
    head = page.get_by_role("button", name="score")
    head.click()
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "descending"
    assert names(page) == list(record.assessment.ranking)
    head.click()
    assert names(page) == list(reversed(record.assessment.ranking))
    assert page.locator("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    page.get_by_role("button", name="client", exact=True).focus()
    page.keyboard.press("Enter")
    assert names(page) == sorted(record.assessment.ranking)
    page.keyboard.press("Enter")
    assert names(page) == sorted(record.assessment.ranking, reverse=True)
    assert page.complaints == []


def test_searching_leaves_those_who_fit(visit, report):
    page = visit(report)
    page.get_by_label("Find a client").fill("B")
    assert names(page) == ["bob"]
    assert page.locator("#found").inner_text() == "1 of 4"
    page.get_by_label("Find a client").fill("")
    assert len(names(page)) == 4


def test_a_client_can_be_picked_out_of_the_timeline(visit, report):
    page = drawn(visit(report), "timeline")
    widths = "e => e.data.map(t => t.line.width)"
    assert len(set(page.locator("#figure-timeline").evaluate(widths))) == 1
    page.get_by_role("button", name="bob", exact=True).click()
    assert page.get_by_role("button", name="bob", exact=True).get_attribute("aria-pressed") == "true"
    assert len(set(drawn(page, "timeline").locator("#figure-timeline").evaluate(widths))) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_follow_the_system_and_the_button(visit, report, scheme):
    page = drawn(visit(report, color_scheme=scheme))

    def brightness():
        return sum(map(int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3]))

    def label():
        return page.locator("#figure-ranking .ytick text").first.evaluate("e => getComputedStyle(e).fill")

    before, ink = brightness(), label()
    assert (before > 600) == (scheme == "light")
    page.locator("#theme").click()
    assert (brightness() > 600) != (scheme == "light")
    drawn(page)
    assert label() != ink
    assert page.complaints == []


def test_a_phone_has_no_sideways_scrolling_of_the_page(visit, report):
    page = drawn(visit(report, **PHONE), *FIGURES)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for name in FIGURES:
        assert page.locator(f"#figure-{name} .main-svg").first.bounding_box()["width"] <= 390
    assert page.complaints == []


@pytest.mark.parametrize("count", [3, 50, 300])
def test_the_first_screen_has_the_whole_answer_without_scrolling(visit, tmp_path, count):
    """Trial 1.17: on a phone the first screen was all text, and the verdicts were out of sight."""
    write(large(clients=count, rounds=60, layers=2), tmp_path / "sized.html")
    for width, height in ((1280, 800), (390, 844)):
        page = visit((tmp_path / "sized.html").as_uri(), viewport={"width": width, "height": height})
        for part in (".lead", ".verdicts", "dl.cards"):
            box = page.locator(part).bounding_box()
            assert box["y"] + box["height"] <= height, (part, width)
        assert page.locator("#ranking-title").bounding_box()["y"] < height - 20, width
        shown = page.locator(".verdicts").inner_text()
        assert re.search(r"\d+ clients? helps?", shown)
        assert "90% confidence" in page.locator(".lead").inner_text()


def test_on_a_phone_the_ranking_is_a_card_for_each_client(visit, report, record):
    """Trial 1.17: the column of verdicts was out of sight."""
    page = visit(report, **PHONE)
    cards = page.locator("#ranking-table tbody tr")
    assert cards.count() == len(record.summaries)
    for card, summary in zip(cards.all(), record.summaries, strict=True):
        box, verdict = card.bounding_box(), card.locator(".verdict").bounding_box()
        assert 0 <= box["x"] < verdict["x"] < verdict["x"] + verdict["width"] <= box["x"] + box["width"] <= 390
        head = "e => getComputedStyle(e, '::before').content"
        assert card.locator("td[data-head=score]").evaluate(head) == '"score "'
        assert card.locator("td[data-head=score]").inner_text() == phrasing.number(summary.score)
    for cell in page.locator("#ranking-table tbody td, #ranking-table tbody th").all():
        box = cell.bounding_box()
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
    page.get_by_role("button", name="score").click()
    page.get_by_role("button", name="score").click()
    assert names(page) == list(reversed(record.assessment.ranking))


def test_on_a_phone_runs_can_be_chosen_and_compared(visit, tmp_path):
    for name in ("digits-mlp-label-noise-fedavg-seed1-67d458c08f4b", "demo"):
        with Recorder(tmp_path / "runs" / name) as recorder:
            for fl_round in federation(rounds=2):
                recorder.observe(fl_round)
    (tmp_path / "list.html").write_text(list_page(tmp_path / "runs"), encoding="utf-8")
    page = visit((tmp_path / "list.html").as_uri(), **PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for part in (*page.get_by_role("checkbox").all(), *page.locator("#runs td:last-child").all()):
        box = part.bounding_box()
        assert 0 <= box["x"] < box["x"] + box["width"] <= 390
    assert page.get_by_role("checkbox").count() == 2


@pytest.mark.parametrize("count", [3, 50, 300])
def test_the_ranking_is_printed_on_one_page(visit, tmp_path, count):
    """Trial 1.17: print split the ranking after row 3."""
    answer = large(clients=count, rounds=60, layers=2).assessment
    truth = {client: float(place) for place, client in enumerate(answer.clients)}
    widest = build_report(answer, draws=100, budget="100000000", truth=truth)
    assert widest.adjusts
    write(widest, tmp_path / "sized.html")
    width, height = 688, 1017  # A4 without its margins, at 96 dots an inch
    page = visit((tmp_path / "sized.html").as_uri(), viewport={"width": width, "height": height})
    page.emulate_media(media="print")
    table = page.locator("#ranking-table").bounding_box()
    assert table["height"] <= height
    assert table["x"] >= 0
    assert table["x"] + table["width"] <= width
    breaks = "e => getComputedStyle(e).breakAfter"
    assert page.locator("#ranking .plot").evaluate(breaks) == "page"  # so that the table begins a page


def test_very_long_names_leave_room_for_the_numbers(visit, tmp_path):
    clients = ("x" * 180, "A hospital trust " * 8, "ann")
    write(assess_rounds(federation(rounds=12, clients=clients), title="y" * 150), tmp_path / "long.html")
    page = drawn(visit((tmp_path / "long.html").as_uri(), **PHONE), "ranking", "heat-map")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.locator("#figure-heat-map .heatmaplayer image").bounding_box()["width"] > 180
    for row in page.locator("#ranking-table tbody tr").all():
        assert row.bounding_box()["height"] < 190
    assert names(page)[0] == clients[0]


def test_a_screen_reader_finds_its_way(visit, report):
    page = drawn(visit(report))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the ranking"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(h => Number(h.tagName[1]))")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.locator("main table caption").count() == page.locator("main table").count()
    assert page.locator("[data-figure][role=img][aria-label]").count() == len(FIGURES)
    assert page.locator("#ranking-table th[scope=row]").count() == 4
    for button in page.get_by_role("button").all():
        assert button.evaluate("b => b.textContent.trim() || b.ariaLabel")
    numbers = {"heat-map": "credits", "timeline": "credits", "ranking": "ranking", "shares": "ranking"}
    for name in FIGURES:
        table = page.locator(f"#{numbers.get(name, name)}-table")
        assert table.locator("tbody tr").count() >= 2, f"the numbers of {name}, for who cannot see it"
        assert table.locator("thead th[scope=col]").count() > 2


def test_whatever_has_the_focus_shows_it(visit, report):
    page = visit(report)
    page.locator("#theme").focus()
    seen = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        tag, style, width = page.evaluate(
            "(s => [document.activeElement.tagName, s.outlineStyle, parseFloat(s.outlineWidth)])"
            "(getComputedStyle(document.activeElement))"
        )
        if tag == "BODY":
            break
        assert style == "solid", tag
        assert width >= 2, tag
        seen.add(tag)
    assert {"A", "INPUT", "BUTTON", "DIV", "SUMMARY"} <= seen


def test_it_prints_in_light_with_all_figures_within_the_paper(visit, report):
    page = drawn(visit(report, color_scheme="dark"))
    assert page.locator("#figure-agreement .main-svg").count() == 0, "not near yet, so not drawn yet"
    pdf = page.pdf(format="A4")
    assert pdf.startswith(b"%PDF")
    for name in FIGURES:
        assert page.locator(f"#figure-{name} .main-svg").count() > 0, name
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    page.set_viewport_size({"width": 688, "height": 1017})  # a resize draws figures again, in light as well
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_timeout(500)
    ink = page.locator("#figure-ranking .ytick text").first.evaluate("e => getComputedStyle(e).fill")
    assert sum(map(int, re.findall(r"\d+", ink)[:3])) < 200
    assert page.complaints == []


def test_names_that_would_do_harm_are_text_everywhere(visit, tmp_path):
    record = nasty()
    write(record, tmp_path / "nasty.html")
    page = drawn(
        visit((tmp_path / "nasty.html").as_uri()), "heat-map", "layers", "above", "shares", "timeline", "ranking"
    )
    assert page.complaints == []
    assert page.locator("img").count() == 0
    assert sorted(names(page)) == sorted(summary.name for summary in record.summaries)
    labels = page.locator("#figure-ranking .ytick text").all_text_contents()
    assert SCRIPT in labels
    assert any(RIGHT_TO_LEFT in label for label in labels)
    cell = page.locator("bdi", has_text=RIGHT_TO_LEFT).first
    assert cell.evaluate("e => getComputedStyle(e).unicodeBidi") == "isolate"
    legend = page.locator("#figure-timeline .legendtext").all_text_contents()
    assert any(text.startswith("<script>alert(1)</") for text in legend)
    assert "$&{x}%{y}" in legend
    page.get_by_role("button", name=SCRIPT).click()
    page.get_by_label("Find a client").fill("<script>")
    assert SCRIPT in names(page)
    point = page.locator("#figure-ranking .scatterlayer .point").first.bounding_box()
    page.mouse.move(point["x"] + point["width"] / 2, point["y"] + point["height"] / 2)
    assert page.complaints == []
    assert page.requests == [(tmp_path / "nasty.html").as_uri()]


def test_without_scripts_the_numbers_are_all_there(visit, report, record):
    page = visit(report, java_script_enabled=False)
    assert names(page) == list(record.assessment.ranking)


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    file = tmp_path_factory.mktemp("large") / "large.html"
    file.write_text(to_page(large()), encoding="utf-8")
    return file


def test_a_thousand_clients_and_rounds_open_within_three_seconds(visit, thousand):
    """From the address to the ranking as a table and as a figure; what lies further down is drawn when it comes near.

    A busy machine stretches the time by the clock, so the best of a few counts, and the work itself is bounded too.
    """
    assert thousand.stat().st_size < 15e6
    times, work = [], []
    while len(times) < 3 or (min(times) > 2 and len(times) < 8):
        page = visit("about:blank")
        probe = page.context.new_cdp_session(page)
        probe.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(thousand.as_uri())
        drawn(page)
        metrics = {entry["name"]: entry["value"] for entry in probe.send("Performance.getMetrics")["metrics"]}
        times.append(page.evaluate("performance.getEntriesByName('drawn ranking')[0].startTime") / 1000)
        work.append(metrics["TaskDuration"])
        assert page.complaints == []
        page.context.close()
    print(f"seconds to the ranking {sorted(times)}, of work {sorted(work)}")
    assert min(times) < 3, times
    assert min(work) < 3, work


def test_of_a_thousand_clients_the_ends_are_shown_and_anyone_is_found(visit, thousand):
    page = drawn(visit(thousand.as_uri()))
    assert len(names(page)) == 30
    assert [int(text) for text in column(page, "rank")][-1] == 1000
    page.get_by_role("button", name="score").click()
    page.get_by_role("button", name="score").click()
    scores = [number(text) for text in column(page, "score")]
    assert len(scores) == 30
    assert scores == sorted(scores)
    page.get_by_label("Find a client").fill("hospital-0777")
    assert names(page) == ["hospital-0777"]
    before = drawn(page, "timeline").locator("#figure-timeline").evaluate("e => e.data.length")
    page.get_by_role("button", name="hospital-0777").click()
    timeline = drawn(page, "timeline").locator("#figure-timeline")
    assert timeline.evaluate("e => e.data.length") == before + 1
    end = timeline.evaluate("e => [e.data.at(-1).name, e.data.at(-1).y.at(-1)]")
    assert end == ["hospital-0777", number(column(page, "score")[0])]
    page.get_by_label("Find a client").fill("")
    page.get_by_role("button", name="Show everyone").click()
    assert page.locator("#ranking-table tbody tr:visible").count() == 1000
    assert page.complaints == []


def test_the_picture_is_a_picture_of_the_answer(tmp_path):
    from PIL import Image

    write(clear(), tmp_path / "report.png")
    with Image.open(tmp_path / "report.png") as picture:
        assert picture.size[0] == 1200
        assert picture.size[1] > 700
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 24)}
    assert (0x20, 0x68, 0xAD) in colours, "the dots of those who help"
    assert (tmp_path / "report.png").stat().st_size < 1_000_000
