import dataclasses
import time

import numpy as np
import pytest

from fedcoast import BadRound, LazyModels, Round
from fedcoast.rounds.schema import ModelSchema, schema_of
from federations import federation

MODEL = {"w": np.zeros(2)}


def test_a_round_cannot_be_changed():
    one = Round(1, MODEL, {"a": MODEL}, MODEL)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.number = 2


def test_rounds_are_compared_and_hashed_by_identity():
    one, other = (Round(1, MODEL, {"a": MODEL}, MODEL) for _ in range(2))
    assert one == one
    assert one != other
    assert len({one, other}) == 2


def test_clients_are_listed_in_one_order_whatever_order_they_came_in():
    names = ["b", 10, "a", 9, "10", "B"]
    expected = (9, 10, "10", "B", "a", "b")
    assert Round(1, MODEL, dict.fromkeys(names, MODEL), MODEL).clients == expected
    assert Round(1, MODEL, dict.fromkeys(names[::-1], MODEL), MODEL).clients == expected


def test_models_are_taken_as_they_come():
    local = LazyModels({"a": lambda: MODEL})
    one = Round(1, MODEL, local, MODEL)
    assert one.start is MODEL
    assert one.local is local


def test_numpy_numbers_are_plain_ones():
    one = Round(np.int64(3), MODEL, {"a": MODEL}, MODEL, metrics={"accuracy": np.float32(0.5)})
    assert (type(one.number), type(one.metrics["accuracy"])) == (int, float)


def test_a_lazy_model_is_loaded_each_time_it_is_asked_for():
    calls = []
    models = LazyModels({"a": lambda: calls.append("a") or MODEL, 7: lambda: calls.append(7) or MODEL})
    assert (list(models), len(models), calls) == (["a", 7], 2, [])
    assert models["a"] is models["a"] is MODEL
    assert calls == ["a", "a"]


def test_weights_of_ten_thousand_clients_are_checked_quickly():
    clients = range(10_000)
    before = time.perf_counter()
    Round(1, MODEL, dict.fromkeys(clients, MODEL), MODEL, weights=dict.fromkeys(clients, 1.0))
    assert time.perf_counter() - before < 2


def test_the_first_difference_between_layouts_is_named_always_the_same():
    one = schema_of({name: np.zeros(2) for name in "abcdef"})
    other = schema_of({name: np.zeros(3) for name in "abcdef"})
    assert one.differs(other) == "layer 'a' was float64 (2,) and is now float64 (3,)"
    assert one.differs(one) is None
    assert one.differs(schema_of({name: np.zeros(2) for name in "abcde"})) == (
        "layer 'f' was float64 (2,) and is now absent"
    )


def test_a_layout_survives_json():
    schema = federation(rounds=1)[0].schema()
    assert ModelSchema.from_json(schema.to_json()) == schema


def test_the_message_says_where_the_first_bad_number_is():
    spoilt = {"w": np.array([[1.0, 2.0], [np.nan, np.inf]])}
    one = Round(4, {"w": np.zeros((2, 2))}, {"a": spoilt}, {"w": np.zeros((2, 2))})
    with pytest.raises(
        BadRound, match=r"^round 4, global model after: layer 'w' must be finite; got nan at flat index 2"
    ):
        dataclasses.replace(one, end=spoilt).read_end(one.schema())


def test_buffers_may_hold_anything_of_the_right_kind():
    def model(value):
        return {"w": np.zeros(2), "bn.running_var": np.array([value]), "empty.running_mean": np.zeros(0)}

    one = Round(1, model(1.0), {"a": model(np.nan)}, model(np.inf))
    schema = one.schema()
    assert [entry.name for entry in schema.trainable] == ["w"]
    assert np.isnan(schema.read(one.local["a"])["bn.running_var"]).all()
