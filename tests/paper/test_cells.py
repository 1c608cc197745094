import pytest

from fedcoast.simulation.presets import preset
from paper.cells import CONFIGURATIONS
from paper.paper_tables import TABLES

SIZES = ("smoke", "quick", "long", "paper")


def trainings(size, *names):
    tables = [TABLES[name](size, (0,)) for name in names]
    return {run for table in tables for cell in table.cells for run in table.runs(cell)}


def test_the_first_table_trains_what_simulate_trains():
    simulated = {
        preset("quick", dataset, model, setting=setting, aggregation=aggregation)
        for dataset, model in CONFIGURATIONS.values()
        for setting in ("quantity", "noise", "resolution", "mask")
        for aggregation in ("fedavg", "pruned")
    }
    assert trainings("quick", "table1") == simulated
    assert {run.name for run in simulated} == {run.name for run in trainings("quick", "table1")}


def test_the_tables_share_their_trainings():
    first = trainings("quick", "table1")
    assert trainings("quick", "table2") == first
    assert len(trainings("quick", "table1", "table3")) == len(first) + 2 * 16  # r = 20 %, and without clipping
    assert len(trainings("quick", "table1", "table4")) == len(first) + 2 * 4
    assert len(trainings("quick", "table1", "table5")) == len(first) + 2 * 4
    assert len(trainings("quick", "table1", "table6")) == len(first) + 4
    assert len(trainings("quick", *TABLES)) == 32 + 32 + 8 + 8 + 4 + 7  # the judgement has no trainings of its own


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", TABLES)
def test_every_place_of_every_table_is_there_once_and_can_be_asked(size, name):
    table = TABLES[name](size, (0, 1))
    places = [(cell.section, cell.row, cell.column) for cell in table.cells]
    assert len(set(places)) == len(places)
    for cell in table.cells:
        assert (cell.spec is None) == (cell.at is not None)
        assert cell.at is None or cell.at <= cell.experiment.rounds
        for spec in cell.specs:
            assert spec.key(cell.experiment).startswith(spec.name)


def test_the_paper_has_a_number_for_every_place_it_could_have_one():
    for name in list(TABLES)[:6]:
        table = TABLES[name]("quick", (0,))
        without = {cell.row for cell in table.cells if cell.published is None}
        assert without <= {"each client alone"}
        assert all(cell.published is None for cell in TABLES[name]("smoke", (0,)).cells)


def test_the_paper_preset_compares_typical_training_at_half_of_its_pruned_rounds():
    rounds = {(cell.row, cell.at) for cell in TABLES["table6"]("paper", (0,)).cells if cell.column == "1"}
    assert rounds == {
        ("typical, M rounds", 100),
        ("pruned, M rounds", 100),
        ("pruned, 1.5 M rounds", 150),
        ("pruned, 2 M rounds", 200),
    }
