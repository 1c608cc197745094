"""MLflow, by its own client, from a database on this machine."""

import time

import pytest

from fedcoast import CoAst, Recorder
from fedcoast.integrations.trackers import MLflow
from fedcoast.integrations.trackers.safe_names import safe_name
from federations import show
from integrations.trackers.federation import check_log, coast, rounds

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def uri(tmp_path_factory):
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow') / 'mlflow.db'}"


def find(uri, run):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=uri)
    known = client.search_runs([client.get_experiment_by_name("fedcoast").experiment_id])
    (found,) = (one for one in known if one.info.run_name == run)
    return client, found


def read(uri, run):
    client, found = find(uri, run)
    logged = {}
    for tag in found.data.metrics:
        history = client.get_metric_history(found.info.run_id, tag)
        logged[tag] = {metric.step: metric.value for metric in history}
        assert len(logged[tag]) == len(history), "a step is logged once"
    return logged, found


def name(client):
    return safe_name(client, MLflow.allowed)


def test_mlflow_reads_what_was_logged(uri, tmp_path):
    with Recorder(tmp_path / "run") as recorder, MLflow(coast(), "today", uri, recorder=recorder) as tracker:
        for fl_round in rounds():
            recorder.observe(fl_round)
            tracker.observe(fl_round)
        assert find(uri, "today")[1].info.status == "RUNNING"
        head = recorder.head
    assert tracker.failure == ""
    logged, run = read(uri, "today")
    check_log(logged, name)
    assert run.info.status == "FINISHED"
    assert run.data.params["fedcoast.keep"] == "0.3"
    assert run.data.tags["fedcoast.chain.head"] == f"{head} (round 6)"
    assert run.data.tags[f"fedcoast.name.{name('a/b')}"] == "a/b"


def test_a_second_start_goes_on_with_the_run_of_that_name(uri):
    show(MLflow(coast(), "resumed", uri), rounds()[:4])
    show(MLflow(coast(), "resumed", uri), rounds())
    check_log(read(uri, "resumed")[0], name)


def test_other_settings_do_not_go_on_with_the_same_run(uri, caplog):
    show(MLflow(coast(), "settings", uri), rounds()[:4])
    other = MLflow(CoAst(keep=0.4), "settings", uri)
    show(other, rounds())
    assert "Use another place" in other.failure
    assert set(read(uri, "settings")[0]["fedcoast/round/pending"]) == {1, 2, 3, 4}


def test_many_clients_are_logged_in_several_batches(uri):
    clients = tuple(f"site-{number}" for number in range(400))
    show(MLflow(coast(), "many", uri), rounds(3, clients))
    assert sum("/score/" in tag for tag in find(uri, "many")[1].data.metrics) == 400


def test_a_server_that_is_down_stops_only_the_logging(monkeypatch, caplog):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    tracker = MLflow(coast(), "down", "http://127.0.0.1:9")  # nobody listens there
    before = time.monotonic()
    assert show(tracker, rounds()) == show(coast(), rounds())
    assert time.monotonic() - before < 60
    assert "MlflowException" in tracker.failure
    assert caplog.text.count("stopped logging in round 1") == 1
