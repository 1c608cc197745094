import numpy as np

from fedcoast import CoAst, Round
from fedcoast.simulation.experiment import Experiment
from paper.method_specs import MethodSpec, coast, plain, sparsified

EXPERIMENT = Experiment()


def test_a_key_stands_for_every_option_and_for_what_is_judged_by():
    keys = [
        coast("votes", EXPERIMENT).key(EXPERIMENT),
        coast("votes", EXPERIMENT, horizon=5).key(EXPERIMENT),
        coast("text", EXPERIMENT).key(EXPERIMENT),
        coast("code", EXPERIMENT).key(EXPERIMENT),
        coast("code", Experiment(step=0.01)).key(EXPERIMENT),
        plain("fed-pca").key(EXPERIMENT),
        plain("fed-pca", seed=1).key(EXPERIMENT),
        plain("shapley").key(EXPERIMENT),
        plain("shapley").key(Experiment(model="convnet")),  # judged on fewer images
    ]
    assert len(set(keys)) == len(keys)
    assert coast("votes", EXPERIMENT).key(EXPERIMENT) == keys[0]


def test_a_key_follows_the_defaults_of_the_method():
    spec = MethodSpec("coast", "coast")
    assert spec.key(EXPERIMENT) == MethodSpec("coast", "coast", {"horizon": CoAst().config.horizon}).key(EXPERIMENT)
    assert spec.key(EXPERIMENT) != MethodSpec("coast", "coast", {"horizon": CoAst().config.horizon + 1}).key(EXPERIMENT)


def test_the_paper_s_equation_asks_for_the_movement_wherever_votes_are_not_what_is_aggregated():
    drifts = {
        aggregation: coast("text", Experiment(aggregation=aggregation)).assessor().settings["reference"]
        for aggregation in ("pruned", "sparse", "fedavg")
    }
    assert drifts == {"pruned": "votes", "sparse": "movement", "fedavg": "movement"}


def test_a_sparse_question_compares_the_start_with_only_the_largest_updates():
    start = {"w": np.array([0.1, 0.1, -0.1, 0.1]), "count": np.array(3)}
    local = {"w": np.array([-0.3, 0.05, -0.2, -0.01]), "count": np.array(4)}
    fl_round = Round(1, start=start, local={"a": local}, end=start, buffers=["count"])
    (shown,) = sparsified([fl_round], keep=0.25)
    np.testing.assert_array_equal(shown.local["a"]["w"], [-0.3, 0.1, -0.1, 0.1])
    assert shown.local["a"]["count"] == 4
    assert shown.start is start


def test_without_pruning_a_sparse_question_sees_the_upload():
    rng = np.random.default_rng(0)
    start, local = {"w": rng.normal(size=9)}, {"w": rng.normal(size=9)}
    (shown,) = sparsified([Round(1, start=start, local={0: local}, end=start)], keep=1.0)
    np.testing.assert_array_equal(shown.local[0]["w"], local["w"])
