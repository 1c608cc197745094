"""Hospitals: the published tables, the small models, and what retraining says a site is worth."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from fedcoast import BadFile, BadSetting, CoAst
from fedcoast.simulation.datasets.brca import load_brca
from fedcoast.simulation.datasets.heart import load_heart
from fedcoast.simulation.datasets.site_table import SiteTable
from fedcoast.simulation.site_federation import SiteExperiment, SiteFederation, retraining_shapley
from fedcoast.simulation.site_models import (
    concordance,
    cox_loss,
    cox_slope,
    cross_entropy,
    gradient,
    new_model,
    scores,
)


@pytest.fixture(scope="module")
def heart():
    return load_heart()


def little_survival(sites=("a", "b", "c"), rows=60):
    rng = np.random.default_rng(3)
    features = rng.normal(size=(rows, 4))
    hidden = rng.exponential(np.exp(-features[:, 0]))
    lost = rng.exponential(2.0, rows)
    return SiteTable(
        name="little",
        title="Little survival",
        task="survival",
        columns=("x", "y", "z", "u"),
        sites=sites,
        features=features,
        outcome=(hidden <= lost).astype(np.int64),
        time=np.minimum(hidden, lost).round(1),  # rounded, so that some times are equal
        site=np.arange(rows) % len(sites),
    )


def test_the_four_hospitals_have_the_patients_that_flamby_keeps(heart):
    assert [len(heart.rows_of(site)) for site in range(4)] == [303, 261, 46, 130]
    assert heart.features.shape == (740, 13)
    shares = {name: heart.outcome[heart.rows_of(site)].mean() for site, name in enumerate(heart.sites)}
    assert shares["switzerland"] > 0.97
    assert shares["hungarian"] < 0.39


def test_the_hospitals_need_no_network_no_folder_and_no_torch(tmp_path):
    code = "import sys; sys.modules['torch'] = None; import fedcoast.simulation.datasets.heart as h; h.load_heart()"
    env = {**os.environ, "FEDCOAST_DATA": str(tmp_path / "nowhere")}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)


def test_absent_survival_data_are_named_with_where_to_get_them(tmp_path):
    with pytest.raises(BadFile, match=r"tcga-brca: wanted brca\.csv and train_test_split\.csv.*FLamby.*FEDCOAST_DATA"):
        load_brca(tmp_path)


def test_altered_survival_data_are_refused(tmp_path):
    (tmp_path / "tcga-brca").mkdir()
    for name in ("brca.csv", "train_test_split.csv"):
        (tmp_path / "tcga-brca" / name).write_text("pid,E,T\n")
    with pytest.raises(BadFile, match="not as published"):
        load_brca(tmp_path)


@pytest.mark.skipif(
    not Path(os.environ.get("FEDCOAST_DATA", "/nowhere"), "tcga-brca").is_dir(), reason="needs TCGA-BRCA"
)
def test_the_six_regions_are_as_flamby_has_them():
    table = load_brca()
    assert [len(table.rows_of(site)) for site in range(6)] == [311, 196, 206, 162, 162, 51]
    assert table.features.shape == (1088, 39)


@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("task", ["classification", "survival"])
def test_the_gradient_is_the_slope_of_the_loss(model, task):
    table = little_survival()
    rng = np.random.default_rng(0)
    start = {name: array.astype(np.float64) for name, array in new_model(model, task, 4, rng).items()}
    time = table.time if task == "survival" else None

    def loss(changed):
        answers = scores(changed, table.features)
        return cross_entropy(answers, table.outcome) if time is None else cox_loss(answers[:, 0], table.outcome, time)

    slopes = gradient(start, table.features, table.outcome, time)
    for name, array in start.items():
        for place in np.ndindex(array.shape):
            up, down = ({**start, name: array.copy()} for _ in range(2))
            up[name][place] += 1e-6
            down[name][place] -= 1e-6
            assert slopes[name][place] == pytest.approx((loss(up) - loss(down)) / 2e-6, abs=1e-5)


def test_coxs_loss_is_that_of_the_textbook_by_hand():
    hazard, event, time = np.array([1.0, 0.0, -1.0]), np.array([1, 0, 1]), np.array([1.0, 2.0, 3.0])
    first = 1 - np.log(np.exp(1) + np.exp(0) + np.exp(-1))
    last = 0.0  # nobody else is left
    assert cox_loss(hazard, event, time) == pytest.approx(-(first + last) / 2)
    assert cox_slope(hazard, event, time).sum() == pytest.approx(0)


def test_without_an_event_there_is_nothing_to_learn():
    assert cox_loss(np.ones(3), np.zeros(3, np.int64), np.arange(3.0)) == 0
    assert not cox_slope(np.ones(3), np.zeros(3, np.int64), np.arange(3.0)).any()


def test_concordance_counts_pairs_whose_order_is_known():
    event, time = np.array([1, 1, 0]), np.array([1.0, 2.0, 3.0])
    assert concordance(np.array([3.0, 2.0, 1.0]), event, time) == 1
    assert concordance(np.array([1.0, 2.0, 3.0]), event, time) == 0
    assert concordance(np.ones(3), event, time) == 0.5


def test_a_hospital_federation_learns_and_is_the_same_again(heart):
    first = list(SiteFederation(heart, SiteExperiment(rounds=10)))
    again = list(SiteFederation(heart, SiteExperiment(rounds=10)))
    assert first[-1].metrics == again[-1].metrics
    assert first[-1].metrics["test accuracy"] > 0.75
    assert list(first[0].local) == list(heart.sites)
    assert first[0].weights["cleveland"] > first[0].weights["switzerland"]


def test_survival_is_learned_too():
    *_, last = SiteFederation(little_survival(rows=240), SiteExperiment(model="linear", rounds=10))
    assert last.metrics["concordance"] > 0.7


def test_no_test_patient_is_trained_on(heart):
    federation = SiteFederation(heart, SiteExperiment())
    for site, rows in enumerate(federation.test_rows):
        assert not set(rows) & set(federation._train[site])
        assert len(rows) + len(federation._train[site]) == len(heart.rows_of(site))


def test_the_values_of_the_sites_add_up_to_what_all_of_them_gain(heart):
    experiment = SiteExperiment(model="linear", rounds=5)
    federation = SiteFederation(heart, experiment)
    before, after = federation.evaluate(federation.first_model()), federation.evaluate(federation.last_model())
    values = retraining_shapley(heart, experiment)["pooled"]
    assert sum(values.values()) == pytest.approx(before["test loss"] - after["test loss"])


def test_an_assessor_takes_the_rounds_as_they_come(heart):
    assessor = CoAst()
    for view in SiteFederation(heart, SiteExperiment(rounds=6)):
        assessor.observe(view)
    assert set(assessor.assessment().ranking) == set(heart.sites)


@pytest.mark.parametrize(
    ("options", "words"),
    [({"rounds": 0}, "rounds"), ({"learning_rate": -1}, "learning_rate"), ({"test_share": 1}, "test_share")],
)
def test_a_senseless_experiment_is_refused_by_name(options, words):
    with pytest.raises(BadSetting, match=words):
        SiteExperiment(**options)


def test_unknown_sites_and_models_are_refused(heart):
    with pytest.raises(BadSetting, match="cleveland"):
        SiteFederation(heart, SiteExperiment(), only=frozenset({"paris"}))
    with pytest.raises(BadSetting, match="'linear' or 'mlp'"):
        list(SiteFederation(heart, SiteExperiment(model="forest")))
