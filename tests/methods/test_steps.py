"""A step reads a round and the state so far, and returns credits and a new state; only the base class commits it."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedcoast import METHODS, CoAst
from fedcoast.rounds.round_view import RoundView
from fedcoast.testing import toy_rounds, toy_utility
from federations import show

ROUNDS = toy_rounds(5)
COAST = {
    "CoAst by movement": partial(CoAst.votes, past_weight=0.3),
    "CoAst by votes": CoAst.paper,
    "CoAst with layers": partial(CoAst, track_layers=True, score_rounds=slice(1, None)),
}
EVERY = {
    **{
        name: partial(method.make, utility=toy_utility())
        if {"utility", "gradient"} & set(method.needs)
        else method.make
        for name, method in METHODS.items()
    },
    **COAST,
}


def dumped(assessor, state):
    facts, arrays = assessor._dump_state(state)
    return repr(facts), {name: np.array(array).tobytes() for name, array in arrays.items()}


@pytest.mark.parametrize("name", EVERY)
def test_a_step_changes_neither_the_assessor_nor_the_state_that_it_is_given(name):
    assessor = EVERY[name]()
    show(assessor, ROUNDS[:4])
    state, answer = assessor._state, assessor.assessment()
    before = dumped(assessor, state)
    results = []
    for _ in range(2):
        view = RoundView(ROUNDS[4], ROUNDS[4].schema(), "quarantine")
        credits, after = assessor._step(view, state)
        results.append((credits, dumped(assessor, after)))
    assert results[0] == results[1]
    assert assessor._state is state
    assert dumped(assessor, state) == before
    assert assessor.assessment() == answer


@pytest.mark.parametrize("name", EVERY)
def test_a_step_that_fails_after_its_last_upload_leaves_the_assessor_as_it_was(name, monkeypatch):
    assessor = EVERY[name]()
    show(assessor, ROUNDS[:3])
    with monkeypatch.context() as patch:
        step = assessor._step

        def failing(view, state):
            step(view, state)
            raise KeyboardInterrupt

        patch.setattr(assessor, "_step", failing, raising=False)
        with pytest.raises(KeyboardInterrupt):
            assessor.observe(ROUNDS[3])
    assert show(assessor, ROUNDS[3:]) == show(EVERY[name](), ROUNDS)


def test_the_view_says_who_was_left_out_once_all_uploads_are_read():
    spoiled = ROUNDS[0].local["north"] | {"head.bias": np.full(4, np.nan)}
    fl_round = replace(ROUNDS[0], local={**ROUNDS[0].local, "north": spoiled, "south": ROUNDS[0].start})
    view = RoundView(fl_round, fl_round.schema(), "quarantine", compare_with_start=True)
    readable = [client for client, _ in view.uploads()]
    assert "north" not in readable
    assert "must be finite" in view.quarantined["north"]
    assert "south" in view.unchanged
    assert [client for client, _ in view.reread(["south", 7])] == [7, "south"]
