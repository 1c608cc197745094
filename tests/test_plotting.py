"""The figures: what is drawn is what the answer says."""

import sys

import numpy as np
import pytest

from fedcoast import BadSetting, CoAst, MissingExtra, plotting
from fedcoast.testing import toy_rounds

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def answer():
    assessor = CoAst(keep=0.5)
    for view in toy_rounds():
        assessor.observe(view)
    return assessor.assessment()


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def test_the_bars_are_the_scores_best_on_top(answer):
    axes = plotting.ranking(answer)
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == [answer.scores[client] for client in answer.ranking[::-1]]
    assert [text.get_text() for text in axes.get_yticklabels()] == [str(c) for c in answer.ranking[::-1]]


def test_the_lines_end_at_the_sums_of_the_counted_credits(answer):
    lines = plotting.timeline(answer).get_lines()[: len(answer.ranking)]
    assert [line.get_ydata()[-1] for line in lines] == pytest.approx([answer.scores[c] for c in answer.ranking])


def test_the_heat_map_leaves_absences_empty(answer):
    (image,) = plotting.heat_map(answer).get_images()
    drawn = np.ma.filled(image.get_array().astype(float), np.nan)
    assert np.array_equal(drawn, answer.credits_of(answer.ranking).T, equal_nan=True)


def test_figures_go_where_they_are_sent(answer):
    from matplotlib import pyplot

    own = pyplot.subplots()[1]
    assert plotting.timeline(answer, ax=own) is own


def test_without_matplotlib_the_error_says_what_to_install(answer, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    with pytest.raises(MissingExtra, match=r"matplotlib.*pip install 'fedcoast\[plots\]'"):
        plotting.ranking(answer)


def test_an_answer_draws_itself(answer):
    bars = answer.plot().patches
    assert [bar.get_width() for bar in bars] == [answer.scores[client] for client in answer.ranking[::-1]]
    own = matplotlib.figure.Figure().subplots()
    assert answer.plot("timeline", ax=own) is own
    assert answer.plot("heat_map").get_images()
    with pytest.raises(BadSetting, match="kind must be one of ranking, timeline, heat_map; got 'pie'"):
        answer.plot("pie")
