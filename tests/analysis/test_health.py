import pytest

from fedcoast import replay
from fedcoast.analysis import health as reading
from fedcoast.analysis.health import Health, health_of
from health import dying, of_before, record

LOSING = (
    "41% of block1.second was moved by no client in round 4, and more than 10% of it in each of the last 2 rounds: the"
    " model is losing capacity, and scores rest on the part that still moves."
)


def over(*shares, layer="block1.second", **others):
    return Health(
        {number: None if share is None else {layer: share, **others} for number, share in enumerate(shares, 1)}
    )


def test_a_layer_that_stops_moving_is_named_with_the_rounds_it_lasts():
    health = over(0.3, 0.1, 0.2, 0.41, head=0.05)
    assert health.warning() == LOSING
    assert health.line() == f"Health: {LOSING}"
    assert (health.worst, health.since("block1.second"), health.since("head")) == ("block1.second", 3, None)
    assert (health.healthy, health.never_moved("block1.second")) == (False, False)


def test_one_round_alone_is_not_counted_as_several():
    assert over(0.0, 0.11).warning().startswith("11% of block1.second was moved by no client in round 2: the model is")


def test_exactly_a_tenth_is_no_reason_to_warn():
    health = over(0.5, 0.1)
    assert (health.healthy, health.warning(), health.concern) == (True, "", None)
    assert health.line() == "Health: at most 10.0% of a layer (block1.second) was moved by no client in the last round."


def test_a_model_that_moves_everywhere_says_so():
    assert over(0.0).line() == "Health: every part of the model was moved by some client in the last round."


def test_what_never_moved_is_no_loss_of_capacity():
    health = over(0.5, 0.6, 0.5)
    assert health.never_moved("block1.second") is True
    assert "in every round so far: this part never moved" in health.warning()
    assert "no capacity is being lost" in health.warning()
    assert health.healthy is False


def test_a_layer_that_began_high_and_lost_more_is_losing_capacity():
    health = over(0.12, 0.2, 0.6)
    assert health.never_moved("block1.second") is False
    assert "in each of the last 3 rounds: the model is losing capacity" in health.warning()


def test_a_frozen_layer_does_not_hide_one_that_dies():
    health = over(0.0, 0.3, embed=1.0)
    assert (health.worst, health.concern) == ("embed", "block1.second")
    assert health.warning().startswith("30% of block1.second")


def test_rounds_that_do_not_tell_leave_it_open_which_it_is():
    health = over(None, 0.5, 0.6)
    assert health.never_moved("block1.second") is None
    assert "losing capacity, or this part never moved (earlier rounds do not tell)" in health.warning()


@pytest.mark.parametrize("health", [Health({}), over(0.5, None)])
def test_nothing_is_said_where_the_last_round_does_not_tell(health):
    assert (health.healthy, health.worst, health.warning(), health.line(), health.to_json()) == (
        None,
        None,
        "",
        "",
        None,
    )


def test_programs_get_the_same_as_people():
    assert over(0.3, 0.1, 0.2, 0.41).to_json() == {
        "round": 4,
        "layer": "block1.second",
        "unmoved": 0.41,
        "since": 3,
        "never_moved": False,
        "warning": LOSING,
    }


def test_names_are_shown_as_the_caller_wants_them():
    assert over(0.0, 0.4).warning(named=str.upper).startswith("40% of BLOCK1.SECOND was")


def carried(folder):
    return {fl_round.number: fl_round.unmoved for fl_round in replay(folder)}


@pytest.mark.parametrize(("lost", "read"), [([0, 5, 0, 0, 1], 1), ([0, 0, 3, 4, 5], 4), ([5, 5, 5, 5, 5], 5)])
def test_of_a_recording_of_before_no_more_rounds_are_read_than_the_warning_needs(tmp_path, monkeypatch, lost, read):
    folder = record(tmp_path / "run", dying(lost))
    wanted = health_of(folder, carried(folder))
    old, numbers = of_before(folder), []
    compute = reading.unmoved_in
    monkeypatch.setattr(reading, "unmoved_in", lambda fl_round: numbers.append(fl_round.number) or compute(fl_round))
    found = health_of(old, carried(old))
    assert numbers == [5, 4, 3, 2, 1][:read]
    assert found.to_json() == wanted.to_json()
    assert found.to_json()["unmoved"] == lost[-1] / 10


def test_what_rounds_carry_is_not_worked_out_again(tmp_path, monkeypatch):
    folder = record(tmp_path / "run", dying([5, 5]))
    monkeypatch.setattr(reading, "unmoved_in", lambda fl_round: pytest.fail("it was carried"))
    assert health_of(folder, carried(folder)).now == {"body": 0.5, "head": 0.0}


def test_old_ballots_do_not_tell(tmp_path):
    folder = of_before(record(tmp_path / "run", dying([5, 5]), ballot_keep=0.1))
    assert health_of(folder, carried(folder)).healthy is None
