"""The scores that the bank tells are those that CoAst itself gives."""

from pathlib import Path

import pytest

from fedcoast import CoAst
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.simulation import simulate
from fedcoast.storage import replay
from paper.bank import extract, read_all
from paper.bank_page import correlations_of_candidates, is_tuning
from paper.bank_scores import CANDIDATES, Candidate, scores

BANK = Path(__file__).parents[2] / "results" / "bank"
EXPERIMENT = Experiment(setting="mask", clients=5, rounds=7, epochs=0.2, batch=16, augment=False)


@pytest.mark.parametrize("candidate", [Candidate(), Candidate(3, 1.0, 14)], ids=["default", "another"])
def test_the_bank_tells_the_scores_of_coast(tmp_path, candidate):
    simulate(Federation(EXPERIMENT), tmp_path / EXPERIMENT.name)
    assessor = CoAst(**vars(candidate))
    for fl_round in replay(tmp_path / EXPERIMENT.name):
        assessor.observe(fl_round)
    answer = assessor.assessment().scores
    computed = scores(extract(tmp_path / EXPERIMENT.name), candidate)
    scale = max(map(abs, computed)) / max(map(abs, answer.values()))  # the bank has no votes to divide by
    assert [answer[client] * scale for client in range(5)] == pytest.approx(computed)


def test_every_run_of_the_committed_bank_can_be_scored():
    runs = read_all(BANK)
    assert sum(is_tuning(run) for run in runs) >= 58
    for run in runs[:3]:
        assert correlations_of_candidates(run).keys() == CANDIDATES.keys()
