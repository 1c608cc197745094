"""Signs of wrong labels and label skew in the uploads: rounds in which they were simulated, and rounds without."""

import numpy as np
import pytest

from fedcoast import CoAst, Round
from fedcoast.analysis.disagreement import Disagreement
from fedcoast.reports.assess_rounds import assess_rounds
from fedcoast.reports.sections import headline

CLIENTS = ("ann", "bob", "cid", "dan")
SHAPES = {"hidden.weight": (40, 20), "head.weight": (10, 20), "head.bias": (10,)}


def rounds(common=1.0, pull=0.0, count=20, seed=0):
    """Updates of one direction for all (`common`), of luck, and of each client's lasting pull on the last layer."""
    rng = np.random.default_rng(seed)
    start = {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
    way = {name: rng.normal(size=shape) for name, shape in SHAPES.items()}
    pulls = {client: rng.normal(size=SHAPES["head.bias"]) for client in CLIENTS}
    for number in range(1, count + 1):
        fade = common * 0.9**number
        local = {}
        for client in CLIENTS:
            update = {name: fade * way[name] + 0.3 * rng.normal(size=shape) for name, shape in SHAPES.items()}
            update["head.bias"] += pull * pulls[client]
            local[client] = {name: (start[name] + 0.1 * update[name]).astype(np.float32) for name in SHAPES}
        end = {name: np.mean([model[name] for model in local.values()], axis=0) for name in SHAPES}
        yield Round(number, start, local, end)
        start = end


def summary_of(shown):
    watch = Disagreement()
    for fl_round in shown:
        watch.observe(fl_round)
    return watch.summary()


def test_clients_that_share_a_direction_at_first_need_no_warning():
    found = summary_of(rounds())
    assert found.early > 0.3
    assert found.sentences() == []


def test_updates_that_never_agree_are_told_as_possible_wrong_labels():
    (text,) = summary_of(rounds(common=0.0)).sentences()
    assert "some labels may be wrong" in text
    assert "a client with wrong labels can score above a clean one" in text


def test_a_lasting_pull_on_the_last_layer_is_told_as_label_skew():
    (text,) = summary_of(rounds(pull=2.0)).sentences()
    assert "label skew" in text


def test_a_few_rounds_tell_nothing():
    assert summary_of(rounds(common=0.0, pull=2.0, count=6)).sentences() == []


def test_an_unreadable_upload_and_a_quarantined_client_cost_nothing():
    def spoiled():
        for fl_round in rounds():
            local = {**fl_round.local, "bob": {name: array * np.nan for name, array in fl_round.local["bob"].items()}}
            local["dan"] = "no model"
            yield Round(fl_round.number, fl_round.start, local, fl_round.end)

    assert summary_of(spoiled()).early > 0.3


def test_a_tiny_last_layer_says_nothing_of_labels():
    def cut(model):
        return {"hidden.weight": model["hidden.weight"], "head.bias": model["head.bias"][:2]}

    shown = [
        Round(r.number, cut(r.start), {c: cut(m) for c, m in r.local.items()}, cut(r.end)) for r in rounds(pull=9.0)
    ]
    assert not any("label skew" in text for text in summary_of(shown).sentences())


@pytest.mark.parametrize(
    ("options", "words"), [({"common": 0.0}, "labels may be wrong"), ({"pull": 2.0}, "label skew")]
)
def test_a_report_says_so_on_its_first_screen(options, words):
    report = assess_rounds(rounds(**options), CoAst())
    assert any(words in sentence for sentence in report.blind_spots)
    assert words in headline(report)
    assert "right with 90% confidence, unless the following misleads them. C" in headline(report)


def test_differences_in_place_of_models_are_told_in_any_loop():
    """Trial 5.4: clients that send differences got silent nonsense."""

    def differing():
        for r in rounds():
            local = {c: {n: m[n] - r.start[n] for n in m} for c, m in r.local.items()}
            yield Round(r.number, r.start, local, r.end)

    (text,) = summary_of(differing()).sentences()
    assert "they look like differences or gradients" in text
