"""Acting on scores: off by default, loud when on, and harmless when it fails."""

import numpy as np
import pytest
from flwr.serverapp.strategy import FedAvg

from fedcoast import BadSetting, CoAst, Recorder
from fedcoast.audit import verify
from fedcoast.integrations.flower import Observed, drop_negative
from integrations.flower.handmade import federation, record, small_model


class Probe:
    def __init__(self):
        self.rounds = []

    def observe(self, fl_round, /):
        self.rounds.append(fl_round)


def run(intervene=None, rounds=4):
    probe, coast = Probe(), CoAst(keep=0.3, horizon=1)
    grid = federation()
    strategy = Observed(FedAvg(), coast, probe, intervene=intervene)
    return strategy.start(grid, record(small_model()), num_rounds=rounds), probe, coast, grid


def mean(grid, number, model, weights):
    models = [node.train(model, number) for node in grid.nodes.values()]
    return sum(w * m["fc.bias"].astype(np.float64) for w, m in zip(weights, models, strict=True)) / sum(weights)


def test_by_default_nobody_is_touched(caplog):
    result, probe, _, grid = run(rounds=1)
    np.testing.assert_allclose(
        probe.rounds[0].end["fc.bias"], mean(grid, 1, small_model(), [30, 20, 10, 10]), rtol=1e-5
    )
    assert "interventions are on" not in caplog.text
    assert result.arrays is not None


def test_a_dropped_client_moves_nothing_and_is_still_assessed(caplog):
    _, probe, coast, grid = run(lambda number, answers: {"partition-3": 0} if number > 1 else {})
    first, second = probe.rounds[:2]
    np.testing.assert_allclose(first.end["fc.bias"], mean(grid, 1, small_model(), [30, 20, 10, 10]), rtol=1e-5)
    np.testing.assert_allclose(second.end["fc.bias"], mean(grid, 2, second.start, [30, 20, 10, 0]), rtol=1e-5)
    assert "partition-3" in second.clients
    assert second.weights == {"partition-0": 30, "partition-1": 20, "partition-2": 10, "partition-3": 0}
    assert second.metrics["fedcoast/factor/partition-3"] == 0
    assert not any("factor" in name for name in first.metrics)
    assert coast.assessment().rounds_scored["partition-3"] == 3
    assert "depend on each other" in caplog.text
    assert "round 2: intervention, weights multiplied by {'partition-3': 0.0}" in caplog.text


def test_a_client_can_be_reweighted_down():
    _, probe, _, grid = run(lambda number, answers: {"partition-0": 0.5}, rounds=1)
    np.testing.assert_allclose(
        probe.rounds[0].end["fc.bias"], mean(grid, 1, small_model(), [15, 20, 10, 10]), rtol=1e-5
    )
    assert probe.rounds[0].weights["partition-0"] == 15


def test_the_hook_is_shown_the_assessments_so_far():
    seen = []
    run(lambda number, answers: seen.append((number, answers["coast"].pending)) or {})
    assert seen == [(1, ()), (2, (1,)), (3, (2,)), (4, (3,))]


def test_drop_negative_waits_and_then_leaves_out_who_hurts():
    _, probe, coast, _ = run(drop_negative(after=3), rounds=5)
    assert coast.assessment().scores["partition-3"] < 0
    assert [fl_round.weights["partition-3"] for fl_round in probe.rounds] == [10, 10, 0, 0, 0]


def test_a_method_that_cannot_answer_yet_is_not_shown_and_the_others_are_acted_on():
    class Later(CoAst):
        method = "later"

        def assessment(self):
            raise BadSetting("not everyone was heard")

    shown, probe = [], Probe()
    strategy = Observed(
        FedAvg(),
        CoAst(),
        Later(),
        probe,
        intervene=lambda n, answers: shown.append(list(answers)) or {"partition-3": 0},
    )
    strategy.start(federation(), record(small_model()), num_rounds=2)
    assert shown == [["coast"], ["coast"]]
    assert [fl_round.weights["partition-3"] for fl_round in probe.rounds] == [0, 0]


@pytest.mark.parametrize(
    "act", [lambda n, a: 1 / 0, lambda n, a: {"partition-0": -1}, lambda n, a: {"partition-0": "x"}, lambda n, a: None]
)
def test_a_hook_that_fails_changes_nothing(act, caplog):
    acted, _, _, _ = run(act)
    plain, _, _, _ = run()
    assert acted.arrays == plain.arrays
    assert "no intervention" in caplog.text


def test_dropping_everyone_keeps_the_old_model():
    result, probe, _, _ = run(lambda n, a: {f"partition-{i}": 0 for i in range(4)}, rounds=2)
    assert result.arrays == {} or result.arrays is None or not len(result.arrays)
    np.testing.assert_array_equal(probe.rounds[1].end["fc.bias"], small_model()["fc.bias"])


def test_a_weight_that_was_not_sent_cannot_be_changed(caplog):
    from fedcoast.integrations.flower.interventions import _reweighted
    from integrations.flower.handmade import answer, ask

    reply = answer(ask(5, record(small_model())), small_model())
    with pytest.raises(BadSetting, match="sent no 'steps'"):
        _reweighted(reply, 0.5, "steps")
    assert not caplog.text


@pytest.mark.parametrize("after", [0, -1, True, "3"])
def test_drop_negative_wants_a_round(after):
    with pytest.raises(BadSetting, match="the number of a round"):
        drop_negative(after)


def test_intervene_must_be_a_function():
    with pytest.raises(BadSetting, match="intervene must be a function"):
        Observed(FedAvg(), CoAst(), intervene="drop")


def test_what_was_recorded_of_an_acting_federation_is_verified_with_its_credits_and_decisions(tmp_path):
    coast = CoAst(keep=0.3, horizon=1)
    with Recorder(tmp_path / "run", ledger=coast) as recorder:
        strategy = Observed(FedAvg(), coast, recorder, intervene=lambda number, answers: {"partition-3": 0.5})
        strategy.start(federation(), record(small_model()), num_rounds=3)
        head = recorder.head
    found = verify(tmp_path / "run", head=head)
    assert found.agrees, found.findings
    assert len(found.confirmed) == 2
    path = tmp_path / "run" / "rounds" / "0000000002" / "round.json"
    path.write_text(
        path.read_text().replace('"fedcoast/factor/partition-3": 0.5', '"fedcoast/factor/partition-3": 1.0')
    )
    (finding,) = verify(tmp_path / "run").findings
    assert finding.what == "was changed: what it says about metrics"
