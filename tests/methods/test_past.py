"""What is taken off for following where ballots are compared with the global model: agreement with its past."""

import numpy as np
import pytest

from fedcoast import BadSetting, CoAst, Round
from fedcoast.methods.layer_selection import choose
from fedcoast.rounds.schema import schema_of
from federations import federation, show
from paper import research_code


def by_movement(**settings):
    return CoAst(**{"reference": "movement", "horizon": 2, "past_weight": 0.5, **settings})


def moving(way, uploads):
    """A federation of one tensor whose entries move as `way` says, round by round; clients claim `uploads`."""
    rounds, start = [], np.zeros(len(way[0]), np.float32)
    for number, (step, updates) in enumerate(zip(way, uploads, strict=True), start=1):
        end = start + np.float32(step)
        local = {client: {"w": start + np.float32(update)} for client, update in updates.items()}
        rounds.append(Round(number, start={"w": start}, local=local, end={"w": end}))
        start = end
    return rounds


WAY = [[1, 1], [1, -1], [-1, -1], [-1, 1]]
UPLOADS = [{"ann": step, "leads": after} for step, after in zip(WAY, [*WAY[1:], WAY[0]], strict=True)]


def test_half_of_the_agreement_with_the_rounds_before_is_taken_off():
    rounds = moving(WAY, UPLOADS)
    plain = show(CoAst.votes(keep=1, horizon=1), rounds)
    halved = show(by_movement(keep=1, horizon=1), rounds)
    assert plain.credits == {1: {"ann": 0, "leads": 2}, 2: {"ann": 0, "leads": 2}, 3: {"ann": 0, "leads": 2}}
    # Round 2 began where round 1 went (+ +): ann claims (+ −), one agrees and one opposes; "leads" claims (− −).
    assert halved.credits == {1: {"ann": 0, "leads": 2}, 2: {"ann": 0, "leads": 3}, 3: {"ann": 0, "leads": 3}}


def test_who_repeats_the_last_step_loses_what_who_foresees_the_next_keeps():
    straight = [[1.0] * 8] * 4 + [[-1.0] * 8] * 4  # four rounds up, then four down
    rounds = moving(straight, [{"follows": step} for step in [straight[0], *straight[:-1]]])
    follower = show(by_movement(keep=1, horizon=1, past_weight=1), rounds).credits
    assert [follower[number]["follows"] for number in range(1, 8)] == [8, 0, 0, -16, -16, 0, 0]


def test_the_first_rounds_have_no_past_and_lose_nothing():
    rounds = federation(rounds=9)
    for horizon in (1, 2, 3):
        plain, halved = (show(by_movement(horizon=horizon, past_weight=past), rounds).credits for past in (0, 0.5))
        for number in range(1, horizon + 1):
            assert plain[number] == halved[number]
        assert plain[horizon + 1] != halved[horizon + 1]


def test_what_is_taken_off_grows_in_proportion():
    rounds = federation(rounds=9)
    plain, half, whole = (show(by_movement(past_weight=past), rounds).scores for past in (0, 0.5, 1))
    assert plain != whole
    for client in plain:
        assert plain[client] - half[client] == half[client] - whole[client]


def test_the_presets_of_the_paper_take_nothing_off():
    for preset in (CoAst.votes, CoAst.paper, research_code.coast):
        assert (preset().config.past_weight, preset().config.layers) == (0, "all")
    assert (CoAst().config.past_weight, CoAst().config.layers) == (0.42, "all")


def test_a_server_that_reuses_its_memory_changes_no_past():
    rounds = federation(rounds=8)
    memory = {name: np.empty_like(array) for name, array in rounds[0].start.items()}
    again = {name: np.empty_like(array) for name, array in rounds[0].start.items()}
    assessor = by_movement()
    for round in rounds:
        for name in memory:
            memory[name][...], again[name][...] = round.start[name], round.end[name]
        assessor.observe(Round(round.number, start=memory, local=round.local, end=again))
    assert assessor.assessment() == show(by_movement(), rounds)


SHAPES = {
    "conv1.weight": (4, 3, 3, 3),
    "conv1.bias": (4,),
    "norm.weight": (4,),
    "conv2.weight": (4, 4, 3, 3),
    "conv2.bias": (4,),
    "head.weight": (2, 4),
    "head.bias": (2,),
}


def chosen(layers, names):
    schema = schema_of({name: np.ones(SHAPES[name], np.float32) for name in names})
    return [entry.name for entry in choose(layers, schema)]


def test_the_ends_are_the_first_layer_with_what_belongs_to_it_and_the_head():
    ends = ["conv1.weight", "conv1.bias", "norm.weight", "head.weight", "head.bias"]
    assert chosen("first+head", list(SHAPES)) == ends


@pytest.mark.parametrize("few", [["head.weight", "head.bias"], ["norm.weight"], ["conv1.weight", "head.weight"]])
def test_a_model_of_one_or_two_layers_is_all_ends(few):
    assert chosen("first+head", few) == few


def test_the_head_of_a_model_without_matrices_is_refused_but_its_ends_are_not():
    with pytest.raises(BadSetting, match="chooses none"):
        chosen("head", ["conv1.bias"])
    assert chosen("first+head", ["conv1.bias"]) == ["conv1.bias"]
