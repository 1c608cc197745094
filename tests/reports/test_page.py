import base64
import csv
import hashlib
import io
import json
import re
import sys
from html.parser import HTMLParser
from importlib.machinery import PathFinder

import numpy as np
import pytest
from plotly.offline import get_plotlyjs

from fedcoast import Assessment, BadSetting
from fedcoast.errors import MissingExtra
from fedcoast.methods import CGSV, Cosine
from fedcoast.reports import browser, plots
from fedcoast.reports.assess_rounds import assess_rounds, build_report
from fedcoast.reports.forms import to_csv, to_json, write
from fedcoast.reports.markdown import markdown
from fedcoast.reports.page import live_page, page, plotly_js, view
from fedcoast.reports.palette import LINES, NAMED, partners
from fedcoast.reports.phrasing import number
from fedcoast.reports.report_data import report_data
from federations import federation, with_upload
from report_samples import MADE, NASTY, RIGHT_TO_LEFT, SCRIPT, clear, large, nasty, small

PLOTLY = "79542150855a52c567260e3137095dbe2b744e6d702a5cabe67da246942fba7a"  # plotly.js-cartesian-dist-min 4.1.1
VOID = {"meta", "input", "img", "br", "link", "hr"}


class Reader(HTMLParser):
    """What a browser would make of a page: its elements, and the text of every table and heading."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.open, self.rows, self.scripts = [], [], [], {}, []
        self.heads, self._table, self._cell = [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append((tag, found))
        if "id" in found:
            self.ids.append(found["id"])
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self._table = self.rows.setdefault(found["id"], [])
        if tag == "tr" and self._table is not None:
            self._table.append([])
        if tag in ("td", "th") and self._table is not None:
            self._table[-1].append("")
            self._cell = True
        if tag == "script":
            self.scripts.append("")
        if tag in ("h1", "h2"):
            self.heads.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"
        if tag == "table":
            self._table = None
        if tag in ("td", "th"):
            self._cell = None

    def handle_data(self, data):
        if self._cell and self._table is not None:
            self._table[-1][-1] += data
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += data
        if self.open and {"h1", "h2"} & set(self.open):
            self.heads[-1] += data


@pytest.fixture(scope="module")
def record():
    rounds = federation(rounds=30, clients=("ann", "bob", "cid", "dan"))
    bad = {name: array * np.nan for name, array in rounds[2].local["bob"].items()}
    rounds[2] = with_upload(rounds[2], "bob", bad)
    truth = {"ann": 4, "bob": 3, "cid": 2, "dan": 1}
    return assess_rounds(rounds, None, {"cosine": Cosine()}, truth=truth, title="small", budget="1000", made=MADE)


@pytest.fixture(scope="module")
def text(record):
    return page(record)


def test_the_page_is_whole_and_every_id_is_there_once(text):
    read = Reader(text)
    assert read.open == []
    assert len(read.ids) == len(set(read.ids))
    assert read.heads[:3] == ["small", "Ranking", "Over time"]


def test_every_section_of_the_issue_is_there(text):
    heads = Reader(text).heads
    assert heads == [
        "small",
        "Ranking",
        "Over time",
        "Round by round",
        "Layers of the model",
        "Who is above whom",
        "Who took part",
        "Shares",
        "Other methods",
        "What the numbers mean",
        "Settings and versions",
    ]


def test_the_table_has_the_right_numbers_in_the_right_order(record, text):
    head, *rows = Reader(text).rows["ranking-table"]
    assert head[:3] == ["rank", "client", "score"]
    assert [row[1] for row in rows] == list(record.assessment.ranking)
    assert [row[2] for row in rows] == [number(s.score) for s in record.summaries]
    assert [row[head.index("true rank")] for row in rows] == [str(s.true_rank) for s in record.summaries]
    paid = [round(100 * float(row[head.index("amount")].replace(",", ""))) for row in rows]
    assert sum(paid) == 100_000


def test_nothing_in_the_page_asks_the_network(text):
    for tag, attributes in Reader(text).tags:
        assert tag not in {"link", "iframe", "object", "embed", "base", "form", "img"}
        assert "src" not in attributes
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "#").startswith("#")
    assert not re.search(r"@import|url\(", text[: text.index("</style>")])


def test_the_policy_lets_run_exactly_the_scripts_that_are_there(text):
    read = Reader(text)
    policy = next(a["content"] for t, a in read.tags if t == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy
    assert "'unsafe-inline'" not in policy.partition("script-src")[2]
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    kinds = [attributes.get("type") for tag, attributes in read.tags if tag == "script"]
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in read.scripts]
    runs = {digest for digest, kind in zip(hashes, kinds, strict=True) if kind != "application/json"}
    assert runs == allowed
    assert kinds == ["application/json", "text/plain", None, "application/json"]


def test_names_that_would_do_harm_are_text_everywhere():
    text = page(nasty())
    read = Reader(text)
    assert [tag for tag, _ in read.tags].count("script") == 4
    assert not [tag for tag, _ in read.tags if tag == "img"]
    shown = {row[1] for row in read.rows["ranking-table"][1:]}
    assert shown == {*NASTY[:3], r"\u202egpj.exe", *NASTY[4:]}
    assert f'<bdi class="short">{RIGHT_TO_LEFT}</bdi>' in text
    assert read.heads[0] == SCRIPT
    content = json.loads(read.scripts[0])
    assert any("&lt;script&gt;" in label for label in content["figures"]["ranking"]["layout"]["yaxis"]["ticktext"])
    assert "<" not in read.scripts[0] + read.scripts[3]


def test_names_never_reach_plotly_as_markup_or_template():
    for figure in view(nasty())["figures"].values():
        for trace in figure["data"]:
            assert "alert" not in trace.get("hovertemplate", "")
        assert "<script" not in json.dumps(figure)


@pytest.mark.parametrize("rounds", [1, 2, 3, 5])
def test_a_run_that_just_began_has_a_page_too(rounds):
    read = Reader(page(small(rounds=rounds)))
    assert read.open == []
    assert "What the numbers mean" in read.heads
    assert ("Over time" in read.heads) == (rounds > 1)


def test_one_client_and_equal_clients_have_a_page_too():
    assert "Who is above whom" not in Reader(page(small(clients=("ann",)))).heads
    assert "Who is above whom" in Reader(page(small(clients=("ann", "bob")))).heads
    same = Assessment("coast", {"a": 0, "b": 0}, {1: {"a": 0, "b": 0}}, rounds_scored={"a": 1, "b": 1})
    assert Reader(page(build_report(same))).open == []


def test_an_assessment_of_nobody_has_a_page_too():
    assert Reader(page(build_report(Assessment("coast", {})))).open == []


def test_a_method_whose_scores_are_no_sums_says_so():
    text = page(assess_rounds(federation(rounds=12), CGSV(), made=MADE))
    assert "not sums" in text


def test_figures_hold_only_colours_that_have_a_dark_partner(record):
    for name, figure in view(record)["figures"].items():
        used = set(re.findall(r'"(#[0-9a-f]{6})"', json.dumps(figure)))
        assert used <= set(partners()), name
    lights = [colour.light for colour in (*NAMED.values(), *LINES)]
    assert len(lights) == len(set(lights))


def contrast(one, other):
    """As WCAG 2 has it, of two colours as #rrggbb or as three numbers up to 255."""

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) for at in (1, 3, 5)] if isinstance(colour, str) else colour
        linear = [
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in np.divide(parts, 255)
        ]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_what_the_standard_says():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)


@pytest.mark.parametrize("dark", [False, True])
def test_text_can_be_read_on_its_ground_and_lines_be_seen(dark):
    for background in ("paper", "card"):
        for ink in ("ink", "soft", "accent", "up", "down"):
            assert contrast(NAMED[ink][dark], NAMED[background][dark]) >= 4.5, (ink, background)
    for mark in LINES:
        assert contrast(mark[dark], NAMED["paper"][dark]) >= 3, mark
    for mark in ("up", "down", "soft"):
        assert contrast(NAMED[mark][dark], NAMED["band"][dark]) >= 3, mark


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("end", ["high", "low"])
def test_numbers_can_be_read_on_every_shade_of_a_heat_map(dark, end):
    rgb = {name: np.array([int(NAMED[name][dark][at : at + 2], 16) for at in (1, 3, 5)]) for name in (end, "zero")}
    for part in np.linspace(0, 1, 11):
        shade = (1 - part) * rgb["zero"] + part * rgb[end]
        assert contrast(NAMED["ink"][dark], shade) >= 4.5, (end, part)


def test_a_thousand_clients_and_rounds_stay_small_and_nobody_is_missing():
    record = large()
    text = page(record)
    assert len(text.encode()) < 15e6
    (_, *shown), (_, *others) = (Reader(text).rows[name] for name in ("ranking-table", "ranking-others"))
    assert [row[1] for row in shown[:15] + others + shown[15:]] == [summary.name for summary in record.summaries]
    page_data = json.loads(Reader(text).scripts[0])
    sums = np.frombuffer(base64.b64decode(page_data["lines"]["sums"]), "<f4").reshape(1000, -1)
    assert np.allclose(sums[:, -1], [summary.score for summary in record.summaries])
    assert "rounds share a column, which shows their mean" in text
    assert "places 16–80, mean" in page_data["figures"]["heat-map"]["layout"]["yaxis"]["ticktext"]


def test_the_library_in_the_page_is_the_published_one_and_fits_the_package_that_makes_the_figures():
    library = plotly_js()
    assert hashlib.sha256(library.encode()).hexdigest() == PLOTLY
    drawn, made = (re.search(r"v(\d+)\.\d+\.\d+", text[:200])[1] for text in (library, get_plotlyjs()))
    assert drawn == made, "take the plotly-cartesian.min.js of the same major version from the npm registry"
    assert "</script" not in library


def test_plots_stand_alone():
    record = small()
    for name, draw in plots.FIGURES.items():
        figure = draw(record)
        assert (figure is None) == (name in ("agreement", "accuracy"))
        if figure is not None:
            assert figure.to_plotly_json()["data"]


def test_the_live_page_may_talk_to_its_server_and_to_nobody_else(record):
    page_data = view(record) | {"status": {"state": "live", "text": f"Live: {SCRIPT}"}}
    text, policy = live_page(page_data)
    assert "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src 'self' 'sha256-" in policy
    assert SCRIPT not in text
    assert Reader(text).open == []


# --- the other forms


def test_markdown_has_the_ranking_and_escapes_names():
    text = markdown(nasty())
    assert "<" not in text
    assert r"a \| b \*c\* \[d\](e)" in text
    rows = [line for line in text.splitlines() if line.startswith("| 1 |")]
    assert len(rows) == 1
    assert re.search("\u2068.*\u2069", text)
    ranking = text[text.index("| rank |") :].split("\n\n")[0].splitlines()
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in ranking} == {ranking[0].count("|")}


def test_no_name_begins_a_row_of_its_own_in_csv():
    names = ["evil\r=1+1", "evil\n=1+1", "ann"]
    scores = dict(zip(names, (3, 2, 1), strict=True))
    record = report_data(Assessment("mine", scores, {1: scores}, rounds_scored=dict.fromkeys(names, 1)))
    rows = list(csv.reader(io.StringIO(to_csv(record), newline="")))
    assert [row[0] for row in rows] == ["client", *names]


def test_csv_has_the_assessment_and_what_the_report_adds(record):
    rows = list(csv.DictReader(io.StringIO(to_csv(record))))
    assert [row["client"] for row in rows] == list(record.assessment.ranking)
    assert [float(row["score"]) for row in rows] == [summary.score for summary in record.summaries]
    assert [float(row["low"]) for row in rows] == [summary.interval[0] for summary in record.summaries]
    assert sum(float(row["amount"]) for row in rows) == pytest.approx(1000)
    assert rows[0]["round 1"] == str(record.assessment.credits[1]["ann"])


def test_json_has_everything(record):
    data = json.loads(to_json(record))
    assert data["format"] == "fedcoast-report"
    assert [entry["client"]["name"] for entry in data["clients"]] == list(record.assessment.ranking)
    assert Assessment.from_json(json.dumps(data["assessment"])) == record.assessment
    sums = [sum(row) for row in data["layers"]["agreement"]]
    assert sums == pytest.approx([entry["score"] for entry in data["clients"]], rel=1e-12)
    assert data["comparison"]["methods"].keys() == {"coast", "cosine"}
    assert data["rewards"]["budget"] == "1000.00"


def test_the_ending_of_the_file_says_the_form(record, tmp_path):
    for form in ("html", "md", "csv", "json"):
        write(record, tmp_path / "new" / f"report.{form}")
        assert (tmp_path / "new" / f"report.{form}").stat().st_size > 100
    write(record, tmp_path / "report.txt", "md")
    assert (tmp_path / "report.txt").read_text().startswith("# Contributions")
    with pytest.raises(BadSetting, match="a report is one of html, md, csv, json, png; got 'pdf'"):
        write(record, tmp_path / "report.pdf")
    assert not (tmp_path / "report.pdf").exists()


def test_a_picture_without_a_browser_is_refused_with_what_to_do(record, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("FEDCOAST_BROWSER", raising=False)
    with pytest.raises(MissingExtra, match="apt install chromium"):
        write(record, tmp_path / "report.png")
    monkeypatch.setenv("FEDCOAST_BROWSER", "netscape")
    with pytest.raises(MissingExtra, match="FEDCOAST_BROWSER=netscape names no program"):
        browser.browser()


def test_without_plotly_the_page_says_what_to_install(record, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "plotly"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(sys, "path_importer_cache", {})
    monkeypatch.setattr(sys, "meta_path", [finder for finder in sys.meta_path if finder is PathFinder])
    with pytest.raises(MissingExtra, match=r"pip install 'fedcoast\[report\]'"):
        plots.ranking(record)
    assert markdown(record)


def test_the_first_screen_says_who_helps_and_how_sure_that_is():
    """Trial 1.17: a manager did not understand the opening paragraph, and accuracy was absent."""
    report = build_report(clear().assessment, title="small", made=MADE, accuracy={1: 0.5, 2: 0.75, 3: 0.876})
    opening = view(report)["summary"]
    assert "ann contributed most." in re.sub("<[^>]*>", "", opening)
    assert "All verdicts together are right with 90% confidence." in opening
    assert re.search(r'class="card helps"><p>\d clients? helps?</p>', opening)
    assert "<dd>87.6%</dd>" in opening
    assert 'aria-label="accuracy over the rounds, from 50.0% to 87.6%"' in opening
    assert '<polyline points="0.0,30.0 50.0,10.1 100.0,0.0"/>' in opening
    assert "surely" not in page(report)
    assert plots.FIGURES["accuracy"](report) is not None
