"""The training bank keeps the exact agreement of all ballots of a run."""

import numpy as np
import pytest

from fedcoast.errors import BadFile
from fedcoast.kernels.ballots import ballot
from fedcoast.simulation.experiment import Experiment
from fedcoast.simulation.federation import Federation
from fedcoast.simulation.simulation import simulate
from fedcoast.storage import replay
from paper.bank import KEEP, LAGS, extract, fill, read, read_all, write

EXPERIMENT = Experiment(setting="noise", clients=3, rounds=4, epochs=0.1, batch=16, augment=False, participation=0.7)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    simulate(Federation(EXPERIMENT), folder / EXPERIMENT.name)
    return folder


def test_agreements_are_products_of_the_ballots(runs):
    ballots = {}
    for fl_round in replay(runs / EXPERIMENT.name):
        for client, upload in fl_round.local.items():
            layers = [ballot(np.asarray(upload[name]) - np.asarray(fl_round.start[name]), KEEP) for name in upload]
            ballots[fl_round.number - 1, client] = np.concatenate(layers).astype(int)
    agreement = extract(runs / EXPERIMENT.name).agreement.sum(axis=0)
    assert agreement.any()
    for (t, m, i, j), value in np.ndenumerate(agreement):
        first, second = ballots.get((t, i)), ballots.get((t + m, j))
        assert value == (0 if first is None or second is None else first @ second), (t, m, i, j)


def test_a_run_of_the_bank_reads_as_it_was_written(runs, tmp_path):
    run = extract(runs / EXPERIMENT.name)
    again = read(write(run, tmp_path))
    assert again.experiment == EXPERIMENT
    assert np.array_equal(again.agreement, run.agreement)
    assert again.accuracy == run.accuracy
    assert again.truth == sorted(again.truth, reverse=True)


def test_filling_the_bank_again_extracts_nothing_twice(runs, tmp_path):
    assert [file.stem for file in fill(runs, tmp_path)] == [EXPERIMENT.name]
    assert list(fill(runs, tmp_path)) == []
    assert [run.experiment for run in read_all(tmp_path)] == [EXPERIMENT]


def test_a_torn_file_is_refused_by_name(tmp_path):
    (tmp_path / "torn.npz").write_bytes(b"PK")
    with pytest.raises(BadFile, match=r"torn\.npz is not a run of the bank"):
        read(tmp_path / "torn.npz")


def test_a_table_of_another_shape_is_refused(runs, tmp_path):
    run = extract(runs / EXPERIMENT.name)
    wrong = type(run)(run.experiment, run.agreement[:, :, :LAGS], run.accuracy, run.made)
    with pytest.raises(BadFile, match="extract it again"):
        read(write(wrong, tmp_path))
