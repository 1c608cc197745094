"""`fedcoast.load`."""

import pytest

import fedcoast
from fedcoast import BadFile, CoAst, Recorder
from fedcoast.methods import METHODS
from fedcoast.testing import toy_rounds


@pytest.fixture
def run(tmp_path):
    with Recorder(tmp_path / "run", about={"where": "here"}) as recorder:
        for view in toy_rounds():
            recorder.observe(view)
    return fedcoast.load(tmp_path / "run")


def test_a_loaded_run_gives_its_rounds_as_often_as_asked(run):
    numbers = [view.number for view in run]
    assert numbers == [view.number for view in run] == [view.number for view in toy_rounds()]
    assert len(run) == len(numbers)
    assert run.about == {"where": "here"}
    assert f"{len(numbers)} rounds" in repr(run)


def test_a_loaded_run_answers_as_an_assessor_that_saw_it(run):
    live = CoAst()
    for view in toy_rounds():
        live.observe(view)
    assert run.assess() == live.assessment()
    assert run.assess(METHODS["cosine"].make()).method == "cosine"


def test_a_folder_without_rounds_is_refused_at_once(tmp_path):
    with pytest.raises(BadFile):
        fedcoast.load(tmp_path)
