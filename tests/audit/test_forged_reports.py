"""Reports whose visible numbers, names, words or figures were changed, their signature's hash renewed each time."""

import hashlib
import json
import re
from dataclasses import replace
from itertools import pairwise

import pytest

from audit.runs import coast, record
from fedcoast.analysis.health import Health
from fedcoast.audit import verify
from fedcoast.audit.report_check import check_report, compare_reports, make_again
from fedcoast.methods import METHODS, CoAst
from fedcoast.methods.remaking import NEEDS_DATA
from fedcoast.reports.assess_rounds import assess_rounds
from fedcoast.reports.forms import to_json
from fedcoast.reports.markup import inert
from fedcoast.reports.page import page
from fedcoast.reports.signature import BLOCK, read_signature
from fedcoast.storage import read_about, replay
from health import dying
from health import record as record_dying

ROUNDS = 40


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forged") / "run"
    record(folder, ROUNDS)
    return folder


@pytest.fixture(scope="module")
def report(run):
    return assess_rounds(
        replay(run),
        CoAst(coast().config, track_layers=True),
        {"cosine": METHODS["cosine"].make(), "norm": METHODS["norm"].make()},
        facts=read_about(run),
        budget="1000",
        title="Hospitals",
    )


@pytest.fixture(scope="module")
def honest(report):
    return page(report)


@pytest.fixture(scope="module")
def again(run, honest):
    signature, assessment, _ = read_signature(honest)
    remade = make_again(run, signature, assessment, ROUNDS)
    return page(remade), to_json(remade)


def renewed(text):
    """The page with a hash that fits what it shows now."""
    (block,) = BLOCK.findall(text)
    rest = BLOCK.sub("", text)
    signature = {**json.loads(block), "digest": hashlib.sha256(rest.encode()).hexdigest()}
    return text.replace(block, inert(signature))


def section(name):
    return re.compile(rf'<section id="{name}".*?</section>', re.DOTALL)


def in_section(name, change):
    def forge(text):
        found = section(name).search(text)
        assert found is not None, name
        return text[: found.start()] + change(found[0]) + text[found.end() :]

    return forge


def first(pattern, replacement):
    def change(part):
        changed, count = re.subn(pattern, replacement, part, count=1, flags=re.DOTALL)
        assert count, pattern
        return changed

    return change


def in_text(change):
    """Apply a change to the first piece of text between tags that it changes."""

    def forge(part):
        pieces = re.split(r"(<[^>]*>)", part)
        for place in range(0, len(pieces), 2):
            changed = change(pieces[place])
            if changed != pieces[place]:
                pieces[place] = changed
                return "".join(pieces)
        raise AssertionError("nothing to change")

    return forge


def larger_number(text):
    return re.sub(r"[0-9]", lambda found: str((int(found[0]) + 1) % 10), text, count=1)


def another_word(text):
    return re.sub(r"\b([A-Za-z]{4,})\b", "gladly", text, count=1)


def swapped_rows(part):
    rows = re.findall(r"<tr[ >].*?</tr>", part, re.DOTALL)
    one, two = next((a, b) for a, b in pairwise(rows[1:]) if a != b)
    return part.replace(one, "\0").replace(two, one).replace("\0", two)


def without_last_row(part):
    return part.replace(re.findall(r"<tr[ >].*?</tr>", part, re.DOTALL)[-1], "")


def doubled_row(part):
    row = re.findall(r"<tr[ >].*?</tr>", part, re.DOTALL)[-1]
    return part.replace(row, row + row)


def in_figures(change):
    """Change the numbers that the figures are drawn from."""

    def forge(text):
        found = re.search(r'(<script type="application/json" id="view">)(.*?)(</script>)', text, re.DOTALL)
        assert found is not None
        view = json.loads(found[2])
        before = json.dumps(view)
        change(view)
        assert json.dumps(view) != before
        return text[: found.start(2)] + inert(view) + text[found.end(2) :]

    return forge


def nudge(value):
    """Change the first number of a figure's data."""
    if isinstance(value, dict):
        return any(nudge_at(value, key) for key in value)
    if isinstance(value, list):
        return any(nudge_at(value, place) for place in range(len(value)))
    return False


def nudge_at(holder, key):
    if isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
        holder[key] = holder[key] + 1
        return True
    if key == "bdata":
        holder[key] = ("B" if holder[key][0] == "A" else "A") + holder[key][1:]
        return True
    return nudge(holder[key])


def a_name_everywhere(text):
    (signature,) = (found[0] for found in BLOCK.finditer(text))
    return text.replace(signature, "\0").replace("ann", "eve").replace("\0", signature)


def forgeries(honest):
    """Every kind of forgery that this page has something for, by name."""
    kinds = {
        "a script that runs": lambda text: text.replace("</body>", "<script>1</script></body>", 1),
        "a style that hides": lambda text: text.replace("</style>", "td{display:none}</style>", 1),
        "the title of the window": first(r"<title>[^<]*</title>", "<title>Oslo is best</title>"),
        "the heading": first(r"(<h1[^>]*>)[^<]*", r"\1Another federation"),
        "the footer": lambda text: text.replace("This page holds all it shows", "This page holds the truth", 1),
        "a sentence before everything": lambda text: text.replace("<h1", "<p>bob contributed most.</p><h1", 1),
        "first screen: its first sentence": first(r'(<p class="lead">)[^<]*', r"\1Everybody helps. "),
        "first screen: how many have a verdict": first(r'(class="card [a-z-]+"><p>)[0-9]+', r"\g<1>9"),
        "first screen: whose verdict it is": first(r'(class="card [a-z-]+"><p>.*?<bdi[^>]*>)[^<]*', r"\1eve"),
        "first screen: the colour of a verdict": first(r'class="card [a-z-]+"', 'class="card helps sure"'),
        "first screen: the accuracy": first(r"<dd>[0-9.]+%</dd>", "<dd>99.9%</dd>"),
        "first screen: the line of accuracy": first(r'(<polyline points=")[^"]*', r"\g<1>0.0,30.0 100.0,0.0"),
        "first screen: what a number is": first(r"<dt>rounds scored</dt>", "<dt>clients that help</dt>"),
        "what a number is on a phone": first(r'data-head="score"', 'data-head="share"'),
        "the policy against scripts": lambda text: text.replace("default-src 'none'", "default-src *", 1),
        "the library that draws": first(r'(id="plotly">)', r"\1;"),
        "the page's own script": first(r"(<script>)", r"\1;"),
        "a name everywhere": lambda text: (
            BLOCK.sub("\0", text).replace("ann", "eve").replace("\0", BLOCK.search(text)[0])
        ),
        "everyone's line in the timeline": in_figures(
            lambda view: view["lines"].update(sums="AAAA" + view["lines"]["sums"][4:])
        ),
        "a name in the timeline": in_figures(lambda view: view["lines"]["names"].reverse()),
        "the rounds of the timeline": in_figures(lambda view: view["lines"]["rounds"].reverse()),
    }
    for name in re.findall(r'<section id="([a-z-]+)"', honest):
        part = section(name).search(honest)[0]
        changes = {
            "a number": in_text(larger_number),
            "a word": in_text(another_word),
            "a name": in_text(lambda text: re.sub(r"\b(ann|bob)\b", "eve", text, count=1)),
            "a sentence added": lambda part: part.replace("</h2>", "</h2><p>All is well.</p>", 1),
            "all of it gone": lambda part: "",
            "its title": first(r"(<h2[^>]*>)[^<]*", r"\1Nothing to see"),
            "rows swapped": swapped_rows,
            "a row gone": without_last_row,
            "a row twice": doubled_row,
            "what a column sorts by": first(r'(data-value=")([^"]*)', r"\g<1>9\2"),
            "a meter": first(r'(<meter[^>]*value=")([0-9])', r"\g<1>9\2"),
            "a share": in_text(lambda text: re.sub(r"([0-9.]+) ?%", "99 %", text, count=1)),
            "a verdict": in_text(
                lambda text: re.sub(
                    r"\b(helps|hurts|unclear|idle|cannot tell|cannot be told)\b", "leads", text, count=1
                )
            ),
            "a sign": in_text(lambda text: re.sub(r"[−+](?=[0-9])", "", text, count=1)),
        }
        for kind, change in changes.items():
            try:
                if change(part) != part:
                    kinds[f"{name}: {kind}"] = in_section(name, change)
            except (AssertionError, StopIteration, IndexError):
                continue  # this section has nothing of the kind
    view = json.loads(re.search(r'id="view">(.*?)</script>', honest, re.DOTALL)[1])
    for figure in view["figures"]:
        kinds[f"figure {figure}: a number"] = in_figures(lambda seen, f=figure: nudge(seen["figures"][f]["data"]))
        kinds[f"figure {figure}: no data"] = in_figures(lambda seen, f=figure: seen["figures"][f].update(data=[]))
        kinds[f"figure {figure}: its axes"] = in_figures(lambda seen, f=figure: nudge(seen["figures"][f]["layout"]))
    return kinds


def test_an_honest_report_agrees_in_html_and_json(run, report, honest, tmp_path):
    (tmp_path / "report.html").write_text(honest)
    (tmp_path / "report.json").write_text(to_json(report))
    found = verify(run, [tmp_path / "report.html", tmp_path / "report.json"])
    assert found.findings == ()
    assert len([line for line in found.confirmed if "its report follows" in line]) == 2


def test_every_kind_of_forgery_is_found_though_the_hash_was_renewed(run, honest, again):
    kinds = forgeries(honest)
    assert len(kinds) >= 50
    missed = []
    for kind, forge in kinds.items():
        forged = renewed(forge(honest))
        assert forged != honest, kind
        assert read_signature(forged)[2], kind  # its own hash is right
        if not list(compare_reports(forged, again[0])):
            missed.append(kind)
    assert missed == []
    assert list(compare_reports(honest, again[0])) == []


@pytest.mark.parametrize("kind", ["ranking: a number", "ranking: a name"])
def test_verify_names_what_a_forged_page_shows(run, honest, tmp_path, kind):
    (tmp_path / "report.html").write_text(renewed(forgeries(honest)[kind](honest)))
    found = verify(run, [tmp_path / "report.html"])
    assert not found.agrees
    assert any("follows from the recording" in str(finding) for finding in found.findings)


@pytest.mark.slow
def test_verify_finds_every_kind_of_forgery(run, honest, tmp_path):
    for kind, forge in forgeries(honest).items():
        (tmp_path / "report.html").write_text(renewed(forge(honest)))
        assert not verify(run, [tmp_path / "report.html"]).agrees, kind


JSON_CHANGES = {
    "a score": lambda report: report["clients"][0].update(score=1e6),
    "a share": lambda report: report["clients"][0].update(share=0.99),
    "an amount": lambda report: report["clients"][0].update(amount="999.00"),
    "a verdict": lambda report: report["clients"][-1].update(verdict="leads"),
    "an interval": lambda report: report["clients"][0].update(interval=[1, 2]),
    "the order": lambda report: report["clients"].reverse(),
    "a probability": lambda report: report["above"][0].reverse(),
    "the level": lambda report: report.update(level=0.5),
    "an answer of another method": lambda report: report["comparison"]["methods"]["norm"]["assessment"][
        "scores"
    ].reverse(),
    "something added": lambda report: report.update(winner="bob"),
    "the health": lambda report: report.update(health=None),
    "the facts": lambda report: report["facts"].update(what="another test"),
}


@pytest.mark.parametrize("change", JSON_CHANGES.values(), ids=JSON_CHANGES.keys())
def test_a_forged_report_in_json_is_found(report, again, change):
    content = json.loads(to_json(report))
    before = json.dumps(content)
    change(content)
    assert json.dumps(content) != before
    assert list(compare_reports(json.dumps(content), again[1]))


WORDS_OF_THE_SIGNATURE = {
    "a method by an invented name": lambda signature: signature["methods"].update(
        {"approved by all": signature["methods"].pop("norm")}
    ),
    "an invented method without an answer": lambda signature: signature["unavailable"].update(
        oracle="bob is worth most"
    ),
    "an invented reason": lambda signature: signature["unavailable"].update(shapley="its owner forbids it; pay bob"),
    "a reason for a method that answers": lambda signature: signature["unavailable"].update(cgsv="it favours ann"),
    "a level of confidence": lambda signature: signature["options"].update(level=0.5),
    "a rule for shares": lambda signature: signature["options"].update(rule="rank"),
    "a budget": lambda signature: signature["options"].update(budget="2000"),
    "the draws of luck": lambda signature: signature["options"].update(draws=100),
    "another title": lambda signature: signature.update(title="Oslo is best"),
    "a setting": lambda signature: signature["assessment"]["settings"].update(horizon=1),
}


@pytest.mark.parametrize("change", WORDS_OF_THE_SIGNATURE.values(), ids=WORDS_OF_THE_SIGNATURE.keys())
def test_words_in_the_signature_alone_do_not_agree_with_the_page(run, honest, change):
    (block,) = BLOCK.findall(honest)
    signature = json.loads(block)
    change(signature)
    assert check_report(run, honest.replace(block, inert(signature)), ROUNDS)


INVENTED = {
    "a reason": {"shapley": "its owner forbids it; pay bob"},
    "a method": {"oracle": "bob is worth most"},
    "a reason for a method that answers": {"cgsv": "it favours ann"},
}


@pytest.mark.parametrize("unavailable", INVENTED.values(), ids=INVENTED.keys())
def test_words_that_an_author_put_into_the_page_and_the_signature_are_found(run, unavailable):
    forged = assess_rounds(replay(run), coast(), {}, unavailable, facts=read_about(run))
    assert check_report(run, page(forged), ROUNDS)


def test_reasons_that_fedcoast_writes_agree(run):
    missing = "this needs scipy, which is not installed; run: pip install 'fedcoast[methods]'"
    reasons = {"shapley": NEEDS_DATA, "least-core": missing}
    report = assess_rounds(replay(run), coast(), {}, reasons, facts=read_about(run))
    assert check_report(run, page(report), ROUNDS) == []


def test_a_warning_about_the_model_cannot_be_left_out(tmp_path):
    record_dying(tmp_path / "run", dying([0, 3, 5, 6, 7, 7, 8]))
    report = assess_rounds(replay(tmp_path / "run"), coast())
    assert report.health.warning()
    last = max(report.assessment.credits.keys() | set(report.assessment.pending))
    assert check_report(tmp_path / "run", page(report), last) == []
    assert check_report(tmp_path / "run", page(replace(report, health=Health({}))), last)


@pytest.mark.parametrize("change", [
    lambda signature: signature.pop("options"),
    lambda signature: signature["options"].update(level="high"),
    lambda signature: signature["options"].update(title="x"),
    lambda signature: signature.update(made="<b>today</b>"),
    lambda signature: signature["versions"].update(numpy="<b>"),
    lambda signature: signature.update(parts=3),
    lambda signature: signature.update(methods={"norm": ["norm", {"bad": 1}]}),
])  # fmt: skip
def test_a_signature_that_does_not_say_how_the_report_was_made_does_not_agree(run, honest, change):
    (block,) = BLOCK.findall(honest)
    signature = json.loads(block)
    change(signature)
    assert check_report(run, honest.replace(block, json.dumps(signature).replace("<", "\\u003c")), ROUNDS)
