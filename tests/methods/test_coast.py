"""CoAst as a user meets it: a stream of rounds, small enough to follow by hand."""

import logging
from dataclasses import replace

import numpy as np
import pytest
import torch

from fedcoast import BadRound, BadSetting, BadUpload, CoAst, Round
from fedcoast.kernels.bit_planes import sizes
from federations import federation, show, with_upload
from paper import research_code

UP, DOWN = [1.0, 1.0, 1.0, 1.0], [-1.0, -1.0, -1.0, -1.0]


def walk(steps, uploads, first=1):
    """Rounds of a model of four numbers that moves by `steps`; in each, every client uploads start + its update."""
    position = np.zeros(4)
    for number, (step, updates) in enumerate(zip(steps, uploads, strict=True), start=first):
        local = {client: {"w": position + np.asarray(update)} for client, update in updates.items()}
        after = position + np.asarray(step)
        yield Round(number, start={"w": position}, local=local, end={"w": after})
        position = after


def climbing(rounds, **updates):
    return list(walk([UP] * rounds, [updates] * rounds))


# The stream


@pytest.mark.parametrize("horizon", [1, 2, 5])
def test_the_credit_of_a_round_is_final_after_as_many_rounds_as_the_horizon(horizon):
    assessor = CoAst.votes(keep=1, horizon=horizon)
    final = {}
    for fl_round in climbing(8, helps=UP, hurts=DOWN):
        assessor.observe(fl_round)
        assessment = assessor.assessment()
        valued = range(1, fl_round.number - horizon + 1)
        assert list(assessment.credits) == list(valued)
        assert assessment.pending == tuple(range(max(1, fl_round.number - horizon + 1), fl_round.number + 1))
        assert assessment.credits.items() >= final.items()
        assert assessment.scores == {"helps": 4 * len(valued), "hurts": -4 * len(valued)}
        final = assessment.credits


def test_before_any_round_there_is_an_empty_answer():
    assessment = CoAst.votes().assessment()
    assert (assessment.scores, assessment.credits, assessment.pending, assessment.ranking) == ({}, {}, (), ())


def test_clients_met_in_pending_rounds_only_have_no_score_yet():
    assessment = show(CoAst.votes(keep=1, horizon=3), climbing(3, a=UP))
    assert (assessment.scores, assessment.rounds_scored, assessment.pending) == ({"a": 0}, {"a": 0}, (1, 2, 3))
    assert np.isnan(assessment.mean["a"])


def test_the_credit_looks_at_the_rounds_after_and_not_at_the_round_itself():
    # Round 1 moves up, rounds 2 and 3 down: who pushed down in round 1 was ahead of the others.
    rounds = list(walk([UP, DOWN, DOWN], [{"early": DOWN, "late": UP}, {"early": DOWN}, {"early": DOWN}]))
    assert show(CoAst.votes(keep=1, horizon=2), rounds).credits == {1: {"early": 4, "late": -4}}


def test_a_window_that_comes_back_to_where_it_was_gives_nobody_credit():
    rounds = list(walk([UP, UP, DOWN], [{"a": UP}] * 3))
    assert show(CoAst.votes(keep=1, horizon=2), rounds).credits == {1: {"a": 0}}


def test_the_window_counts_rounds_as_they_are_shown_whatever_their_numbers():
    rounds = [
        replace(fl_round, number=number) for fl_round, number in zip(climbing(3, a=UP), (10, 500, 501), strict=True)
    ]
    assert show(CoAst.votes(keep=1, horizon=1), rounds).credits == {10: {"a": 4}, 500: {"a": 4}}


def test_only_the_largest_share_of_each_layer_votes():
    rounds = list(walk([[1, 1, -1, -1]] * 2, [{"a": [9, 0.1, 8, 0.1]}] * 2))
    assert show(CoAst.votes(keep=0.25, horizon=1), rounds).scores == {"a": 1}
    assert show(CoAst.votes(keep=0.5, horizon=1), rounds).scores == {"a": 0}
    assert show(CoAst.votes(keep=1, horizon=1), rounds).scores == {"a": 0}
    assert show(CoAst.votes(signal="update", keep=0.25, horizon=1), rounds).scores == {"a": 0}


def test_drift_by_votes_needs_no_movement():
    still = list(walk([[0, 0, 0, 0]] * 3, [{"a": UP, "b": UP, "c": DOWN}] * 3))
    assert show(CoAst.votes(keep=1, horizon=1), still).scores == {"a": 0, "b": 0, "c": 0}
    assert show(CoAst.votes(keep=1, horizon=1, reference="votes"), still).scores == {"a": 8, "b": 8, "c": -8}


def test_drift_by_votes_is_that_of_the_rounds_after():
    rounds = list(walk([UP] * 3, [{"a": DOWN, "b": DOWN, "c": DOWN}, {"a": UP}, {"a": UP}]))
    assert show(CoAst.votes(keep=1, horizon=2, reference="votes"), rounds).credits == {1: {"a": -4, "b": -4, "c": -4}}


def test_rounding_is_no_movement_unless_one_asks_for_it():
    ulp = np.spacing(1.0)
    start = {"w": np.ones(4)}
    rounds = [Round(n, start, {"a": {"w": np.full(4, 2.0)}}, {"w": np.full(4, 1.0 + n * ulp)}) for n in (1, 2)]
    assert show(CoAst.votes(keep=1, horizon=1), rounds).scores == {"a": 0}
    assert show(CoAst.votes(keep=1, horizon=1, ulp_tolerance=0), rounds).scores == {"a": 4}


# Who takes part


def test_a_client_that_is_away_gets_neither_credit_nor_penalty():
    present = {"always": UP, "sometimes": UP}
    rounds = list(walk([UP] * 5, [present, {"always": UP}, present, {"always": UP}, present]))
    assessment = show(CoAst.votes(keep=1, horizon=1), rounds)
    assert assessment.credits[2] == {"always": 4}
    assert assessment.scores == {"always": 16, "sometimes": 8}
    assert assessment.rounds_scored == {"always": 4, "sometimes": 2}
    assert assessment.mean == {"always": 4.0, "sometimes": 4.0}


def test_a_client_that_leaves_keeps_its_score_and_goes_on_from_it_when_it_returns():
    rounds = list(
        walk([UP] * 6, [{"a": UP, "b": UP}, {"b": UP}, {"b": UP}, {"b": UP}, {"a": DOWN, "b": UP}, {"b": UP}])
    )
    scores = [show(CoAst.votes(keep=1, horizon=1), rounds[:count]).scores["a"] for count in range(2, 7)]
    assert scores == [4, 4, 4, 4, 0]


def test_a_newcomer_is_scored_from_its_first_round():
    rounds = list(walk([UP] * 4, [{"old": UP}, {"old": UP}, {"old": UP, "new": UP}, {"old": UP}]))
    assessment = show(CoAst.votes(keep=1, horizon=1), rounds)
    assert assessment.scores == {"new": 4, "old": 12}
    assert assessment.mean == {"new": 4.0, "old": 4.0}


def test_one_client_alone_agrees_with_itself():
    rounds = federation(seed=9, rounds=4, clients=("alone",))
    assert show(CoAst.votes(keep=0.5, horizon=1), rounds).scores["alone"] > 0


def test_a_free_rider_never_ranks_first():
    for seed in range(5):
        rounds = [with_upload(fl_round, "idle", fl_round.start) for fl_round in federation(seed=seed, rounds=8)]
        for target in ("ballot", "pruned", "parameters", "update"):
            assessment = show(CoAst.votes(keep=0.3, signal=target), rounds)
            assert assessment.scores["idle"] == 0
            if any(assessment.scores.values()):
                assert assessment.ranking[0] != "idle"


def test_clients_of_known_worth_are_ranked_by_it():
    rounds = federation(seed=10, rounds=30, clients=(0, 1, 2, 3, 4), layers={"w": (30, 30)})
    assessment = show(CoAst.votes(), rounds)
    assert assessment.ranking == (0, 1, 2, 3, 4)
    assert assessment.spearman({client: -client for client in range(5)}) == pytest.approx(1)


# Which rounds and which tail


def test_a_warm_up_can_be_left_out_and_a_window_can_slide():
    rounds = list(walk([UP] * 6, [{"a": DOWN}] * 2 + [{"a": UP}] * 4))

    def score(part):
        assessment = show(CoAst.votes(keep=1, horizon=1, score_rounds=part), rounds)
        assert list(assessment.credits) == [1, 2, 3, 4, 5]
        return assessment.scores["a"], assessment.rounds_scored["a"]

    assert score(slice(None)) == (4, 5)
    assert score(slice(2, None)) == (12, 3)
    assert score(slice(-2, None)) == (8, 2)
    assert score(slice(None, 2)) == (-8, 2)
    assert score(slice(-3, -1)) == (8, 2)
    assert score(slice(99, None)) == (0, 0)


def test_a_sliding_window_slides_as_rounds_come():
    assessor = CoAst.votes(keep=1, horizon=1, score_rounds=slice(-2, None))
    scores = []
    for fl_round in walk([UP] * 6, [{"a": DOWN}] * 2 + [{"a": UP}] * 4):
        assessor.observe(fl_round)
        scores.append(assessor.assessment().scores["a"])
    assert scores == [0, -4, -8, 0, 8, 8]


def test_a_truncated_tail_is_valued_with_the_future_there_is_and_stays_pending():
    rounds = list(walk([UP, UP, UP, DOWN], [{"a": UP}] * 4))
    dropped, truncated = (
        show(CoAst.votes(keep=1, horizon=3, incomplete_rounds=tail), rounds) for tail in ("drop", "truncate")
    )
    assert dropped.credits == {1: {"a": 4}}
    assert truncated.credits == {1: {"a": 4}, 2: {"a": 0}, 3: {"a": -4}}
    assert truncated.pending == dropped.pending == (2, 3, 4)
    assert (truncated.scores, truncated.rounds_scored) == ({"a": 0}, {"a": 3})


def test_a_truncated_credit_is_provisional():
    assessor = CoAst.votes(keep=1, horizon=2, incomplete_rounds="truncate")
    credits = []
    for fl_round in walk([UP, DOWN, [3, 3, 3, 3]], [{"a": UP}] * 3):
        assessor.observe(fl_round)
        credits.append(assessor.assessment().credits.get(1))
    assert credits == [None, {"a": -4}, {"a": 4}]


# Which layers


LAYERS = {"conv.weight": (2, 2, 3, 3), "conv.bias": (2,), "fc.weight": (3, 2), "fc.bias": (3,)}
DEEP = federation(seed=11, rounds=4, layers=LAYERS)


def votes_of(layers, rounds=DEEP):
    """How many votes a client has: all parameters of the layers that count."""
    assessor = CoAst.votes(keep=1, layers=layers, signal="update", reference="movement", ulp_tolerance=0)
    show(assessor, rounds)
    (pending, *_) = assessor._state.pending
    return int(sizes(pending.signals["ann"], pending.plane_layout).sum())


@pytest.mark.parametrize(("layers", "size"), [
    ("all", 36 + 2 + 6 + 3),
    ("head", 6 + 3),
    ("fc.*", 6 + 3),
    ("*.bias", 2 + 3),
    (["conv.bias", "fc.weight"], 2 + 6),
    (("conv.*",), 36 + 2),
    (lambda name: name.startswith("conv"), 36 + 2),
    ("conv.weigh?", 36),
])  # fmt: skip
def test_layers_are_chosen_by_word_pattern_or_function(layers, size):
    assert votes_of(layers) == size


@pytest.mark.parametrize("layers", ["resnet.*", ["a", "b"], lambda name: False, "", "ALL", "Fc.*"])
def test_a_choice_of_no_layer_is_refused_with_the_names_there_are(layers):
    assessor = CoAst.votes(layers=layers)
    with pytest.raises(
        BadSetting, match=r"none of the model's layers \(conv\.weight, conv\.bias, fc\.weight, fc\.bias\)"
    ):
        assessor.observe(DEEP[0])
    assert assessor.assessment().pending == ()


def test_a_model_of_vectors_has_no_head():
    with pytest.raises(BadSetting, match="layers='head' chooses none"):
        CoAst.votes(layers="head").observe(federation(rounds=1, layers={"a": (3,), "b": (2,)})[0])


def test_the_head_is_the_last_matrix_and_what_follows_it_whatever_order_later_rounds_come_in():
    def turned(model):
        return dict(reversed(model.items()))

    later = [replace(r, start=turned(r.start), end=turned(r.end)) for r in DEEP[1:]]
    assert show(CoAst.votes(keep=0.5, layers="head"), [DEEP[0], *later]) == show(
        CoAst.votes(keep=0.5, layers="head"), DEEP
    )


@pytest.mark.parametrize(("layers", "message"), [
    ("all", "all"), (["a.*", "b"], ["a.*", "b"]), (("a",), ["a"]), (str.islower, "function str.islower"),
])  # fmt: skip
def test_the_choice_of_layers_is_said_in_the_settings(layers, message):
    assert CoAst.votes(layers=layers).settings["layers"] == message


def test_a_nameless_function_is_said_as_well_as_can_be():
    class Picky:
        def __call__(self, name):
            return True

    assert CoAst.votes(layers=Picky()).settings["layers"] == "function Picky"
    assert "lambda" in CoAst.votes(layers=lambda name: True).settings["layers"]


# Buffers


def network(seed):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))


def trained_rounds(rounds=4):
    """A real network with normalisation, its statistics included in what is sent and averaged."""
    model, shown = network(0), []
    for number in range(1, rounds + 1):
        start, local = {name: tensor.clone() for name, tensor in model.state_dict().items()}, {}
        for client in range(3):
            mine = network(0)
            mine.load_state_dict(start)
            inputs = torch.randn(16, 4, generator=torch.Generator().manual_seed(10 * number + client))
            mine(inputs).square().mean().backward()
            with torch.no_grad():
                for parameter in mine.parameters():
                    parameter -= 0.1 * parameter.grad
            local[client] = mine.state_dict()
        end = {
            name: torch.stack([m[name].double() for m in local.values()]).mean(0).to(start[name].dtype)
            for name in start
        }
        shown.append(Round(number, start, local, end))
        model.load_state_dict(end)
    return shown


def test_statistics_of_normalisation_layers_never_vote():
    rounds = trained_rounds()
    assert "1.running_mean" in rounds[0].start
    assert "1.num_batches_tracked" in rounds[0].start
    parameters = sum(parameter.numel() for parameter in network(0).parameters())
    assert votes_of_network(rounds) == parameters
    scrambled = [
        replace(r, local={c: {**m, "1.running_mean": torch.full((3,), 1e30)} for c, m in r.local.items()})
        for r in rounds
    ]
    assert show(CoAst.votes(keep=0.3), scrambled) == show(CoAst.votes(keep=0.3), rounds)
    assert any(show(CoAst.votes(keep=0.3), rounds).scores.values())


def votes_of_network(rounds):
    assessor = CoAst.votes(keep=1, signal="update")
    assessor.observe(rounds[0])
    (pending,) = assessor._state.pending
    return sum(pending.plane_layout.sizes)


def test_entries_named_as_buffers_never_vote():
    rounds = [replace(fl_round, buffers=["fc.*"]) for fl_round in DEEP]
    assert show(CoAst.votes(keep=0.5), rounds).scores == show(CoAst.votes(keep=0.5, layers="conv.*"), DEEP).scores


def test_state_dicts_and_arrays_are_assessed_alike():
    rounds = trained_rounds()
    plain = [
        replace(
            r,
            start={name: tensor.numpy() for name, tensor in r.start.items()},
            end={name: tensor.numpy() for name, tensor in r.end.items()},
            local={client: {n: t.numpy() for n, t in model.items()} for client, model in r.local.items()},
        )
        for r in rounds
    ]
    assert show(CoAst.votes(keep=0.3), plain) == show(CoAst.votes(keep=0.3), rounds)


# Small tensors


def test_a_tensor_too_small_for_the_share_votes_as_told():
    rounds = list(walk([UP] * 2, [{"a": [3, 2, 1, 1]}] * 2))
    scores = {
        small: show(CoAst.votes(keep=0.1, horizon=1, tiny_layers=small), rounds).scores["a"]
        for small in ("one", "none", "raw")
    }
    assert scores == {"one": 1, "none": 0, "raw": 4}


# Presets


def test_the_papers_preset_is_the_papers_text():
    assert CoAst.paper().settings == CoAst.votes().settings | {
        "signal": "parameters", "reference": "votes", "baseline": "none", "tiny_layers": "none",
    }  # fmt: skip


def test_the_research_codes_preset_is_the_code():
    assert research_code.coast().settings == CoAst.votes().settings | {
        "signal": "pruned", "baseline": "none", "ulp_tolerance": 0, "tiny_layers": "raw",
    }  # fmt: skip


def test_a_preset_can_be_changed():
    assert CoAst.paper(horizon=5, baseline="idle").settings["horizon"] == 5
    assert CoAst.paper(baseline="idle").settings["baseline"] == "idle"
    with pytest.raises(TypeError):
        CoAst.paper(horizont=5)


# Quarantine


def spoilt(rounds, *places):
    bad = {name: np.full_like(array, np.nan) for name, array in rounds[0].start.items()}
    return [with_upload(r, "bob", bad) if place in places else r for place, r in enumerate(rounds)]


def test_quarantined_uploads_are_counted_and_said_everywhere(caplog):
    caplog.set_level(logging.CRITICAL, logger="fedcoast")
    assessment = show(CoAst.votes(horizon=1), spoilt(DEEP, 0, 2))
    assert (assessment.quarantine_count("bob"), assessment.quarantine_count("ann")) == (2, 0)
    assert assessment.rounds_scored == {"ann": 3, "bob": 1, "cid": 3}
    assert "bob" not in assessment.credits[1]
    reason = "round 1, layer 'conv.weight' must be finite; got nan at flat index 0 (36 of 36 entries)"
    assert assessment.quarantined[1] == {"bob": reason}
    assert reason in assessment.to_json()
    assert reason in assessment.to_csv()
    table = str(assessment)
    assert "quarantined" in table
    row = next(line for line in table.splitlines() if "bob" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")][-1] == "2"
    assert "quarantined" not in str(show(CoAst.votes(horizon=1), DEEP))


def test_the_log_tells_of_every_quarantine(caplog):
    with caplog.at_level(logging.WARNING, logger="fedcoast"):
        show(CoAst.votes(), spoilt(DEEP, 1))
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "client 'bob': round 2" in caplog.text


def test_a_bad_upload_can_be_made_to_raise():
    with pytest.raises(BadUpload, match=r"client 'bob': round 1, layer 'conv\.weight' must be finite") as caught:
        CoAst.votes(bad_uploads="raise").observe(spoilt(DEEP, 0)[0])
    assert caught.value.client == "bob"


def test_a_client_whose_every_upload_was_bad_is_still_listed(caplog):
    caplog.set_level(logging.CRITICAL, logger="fedcoast")
    assessment = show(CoAst.votes(horizon=1), spoilt(DEEP, 0, 1, 2, 3))
    assert (assessment.scores["bob"], assessment.rounds_scored["bob"], assessment.quarantine_count("bob")) == (0, 0, 4)


def test_a_round_that_says_who_was_left_out_is_believed():
    reported = replace(DEEP[0], quarantined={"bob": "timed out", "zoe": "no signature"})
    assessment = show(CoAst.votes(horizon=1), [reported, *DEEP[1:]])
    assert assessment.quarantined == {1: {"bob": "timed out", "zoe": "no signature"}}
    assert "bob" not in assessment.credits[1]
    assert assessment.scores["zoe"] == 0


# What it does not do


def test_nothing_held_is_the_callers_memory():
    for source in ("movement", "votes"):
        for target in ("ballot", "parameters"):
            rounds = list(walk([UP] * 3, [{"a": UP}] * 3))
            assessor = CoAst.votes(keep=1, horizon=1, reference=source, signal=target)
            reference = show(CoAst.votes(keep=1, horizon=1, reference=source, signal=target), rounds)
            for fl_round in rounds:
                fresh = Round(fl_round.number, {"w": fl_round.start["w"].copy()},
                              {"a": {"w": fl_round.local["a"]["w"].copy()}},
                              {"w": fl_round.end["w"].copy()})  # fmt: skip
                assessor.observe(fresh)
                for array in (fresh.start["w"], fresh.local["a"]["w"], fresh.end["w"]):
                    array[:] = 1e9
            assert assessor.assessment() == reference


def test_read_only_arrays_are_enough():
    def frozen(model):
        copies = {name: array.copy() for name, array in model.items()}
        for array in copies.values():
            array.flags.writeable = False
        return copies

    rounds = [
        replace(r, start=frozen(r.start), end=frozen(r.end), local={c: frozen(m) for c, m in r.local.items()})
        for r in DEEP
    ]
    for settings in ({}, {"reference": "votes"}, {"signal": "pruned", "step": "avg"}):
        assert show(CoAst.votes(**settings), rounds) == show(CoAst.votes(**settings), DEEP)


def test_a_scalar_parameter_counts():
    rounds = [
        Round(n, {"t": np.array(float(n))}, {"a": {"t": np.array(n + 2.0)}}, {"t": np.array(n + 1.0)}) for n in range(4)
    ]
    assert show(CoAst.votes(horizon=1), rounds).scores == {"a": 3}


@pytest.mark.parametrize("step", [0.02, "avg", 1e300])
def test_updates_too_large_for_the_type_are_still_judged_by_their_sign(step):
    most = np.finfo(np.float32).max
    start = np.full(4, -most, np.float32)
    local = np.array([most, -most, -most, -most], np.float32)
    rounds = [Round(n, {"w": start}, {"a": {"w": local}}, {"w": start * np.float32(1 - n / 8)}) for n in (1, 2, 3)]
    expected = {"ballot": 2, "pruned": 0 if step == 0.02 else 4, "parameters": 4, "update": 2}
    for target, score in expected.items():
        assert show(CoAst.votes(keep=0.25, horizon=1, signal=target, step=step), rounds).scores == {"a": score}


def test_a_round_out_of_order_is_refused():
    assessor = CoAst.votes()
    show(assessor, DEEP[:2])
    with pytest.raises(BadRound, match="round numbers must increase; got 1 after 2"):
        assessor.observe(DEEP[0])
