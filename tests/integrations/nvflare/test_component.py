"""The FLARE component, driven by hand-made events: what each event gives, and that nothing reaches the job."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from nvflare.apis.analytix import ANALYTIC_EVENT_TYPE
from nvflare.apis.event_type import EventType
from nvflare.apis.fl_constant import FLContextKey, ReservedKey
from nvflare.apis.fl_context import FLContext, FLContextManager
from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
from nvflare.app_common.abstract.model import make_model_learnable
from nvflare.app_common.app_constant import AppConstants
from nvflare.app_common.app_event_type import AppEventType
from nvflare.app_common.utils.fl_model_utils import FLModelUtils
from nvflare.job_config.api import FedJob

from fedcoast import Assessment, BadSetting, CoAst, replay
from fedcoast.integrations.nvflare import ContributionObserver, add_observer

STEPS = {"site-1": 1.0, "site-2": 0.6, "site-3": -0.8}


class Job:
    """Fires the events of a FedAvg or ScatterAndGather job, without any network."""

    def __init__(self, folder, observer):
        self.observer, self.analytics = observer, []
        workspace = SimpleNamespace(get_run_dir=lambda job_id: str(folder))
        engine = SimpleNamespace(get_workspace=lambda: workspace, fire_event=self.listen)
        self.manager = FLContextManager(
            engine=engine, identity_name="server", job_id="job", public_stickers={}, private_stickers={}
        )
        self.model = {"w": np.random.default_rng(0).standard_normal((9, 8)).astype(np.float32)}
        self.fire(EventType.START_RUN)

    def listen(self, event_type, fl_ctx):
        if event_type == ANALYTIC_EVENT_TYPE:
            self.analytics.append(fl_ctx.get_prop(FLContextKey.EVENT_DATA))

    def fire(self, event, peer=None, **props):
        with self.manager.new_context() as fl_ctx:
            for name, value in props.items():
                fl_ctx.set_prop(getattr(AppConstants, name), value, private=True, sticky=False)
            if peer is not None:
                other = FLContext()
                other.set_prop(ReservedKey.IDENTITY_NAME, peer, private=False, sticky=False)
                fl_ctx.set_peer_context(other)
            self.observer.handle_event(event, fl_ctx)

    def round(self, number, kind=ParamsType.FULL, gather=False, spoil=None, accepted=None, end=None):
        rng = np.random.default_rng([3, number])
        sent = FLModelUtils.to_shareable(FLModel(params=self.model, params_type=ParamsType.FULL, current_round=number))
        updates = {}
        for site, step in STEPS.items():
            self.fire(AppEventType.BEFORE_TRAIN_TASK, TRAIN_SHAREABLE=sent)
            updates[site] = (0.1 * (step + rng.standard_normal((9, 8)))).astype(np.float32)
        for site, update in updates.items():
            params = {"w": update if kind == ParamsType.DIFF else self.model["w"] + update}
            if spoil is not None and site == "site-2":
                params = spoil(params)
            result = FLModelUtils.to_shareable(
                FLModel(params=params, params_type=kind, meta={"NUM_STEPS_CURRENT_ROUND": 4})
            )
            is_accepted = True if accepted is None else accepted.get(site, True)
            self.fire(
                AppEventType.AFTER_CONTRIBUTION_ACCEPT, site, TRAINING_RESULT=result, AGGREGATION_ACCEPTED=is_accepted
            )
        mean = np.mean([*updates.values()], axis=0, dtype=np.float64)
        before, self.model = self.model, {"w": (self.model["w"] + mean).astype(np.float32)}
        if isinstance(end, str):  # FLARE fails, or gives a model that is none
            params = {"w": object()}
            result = FLModel(params=params, params_type=kind)
            return self.fire(AppEventType.AFTER_AGGREGATION, AGGREGATION_RESULT=result) if end == "nonsense" else None
        if end is not None:
            self.model = {"w": self.model["w"] * end}
            mean = self.model["w"] - before["w"]
        if gather:
            self.fire(AppEventType.AFTER_AGGREGATION, AGGREGATION_RESULT=result)
            self.fire(AppEventType.AFTER_SHAREABLE_TO_LEARNABLE, GLOBAL_MODEL=make_model_learnable(self.model, {}))
        else:
            params = {"w": mean if kind == ParamsType.DIFF else before["w"] + mean}
            self.fire(AppEventType.AFTER_AGGREGATION, AGGREGATION_RESULT=FLModel(params=params, params_type=kind))


def results(folder):
    data = json.loads((folder / "fedcoast-scores.json").read_text())
    return Assessment.from_json(json.dumps(data["assessment"])), data["unobserved"]


@pytest.mark.parametrize("gather", [False, True], ids=["FedAvg", "ScatterAndGather"])
@pytest.mark.parametrize("kind", [ParamsType.FULL, ParamsType.DIFF])
def test_sites_are_ranked_by_name_whatever_they_send(tmp_path, kind, gather):
    job = Job(tmp_path, ContributionObserver(options={"horizon": 1}, record_to="run"))
    for number in range(6):
        job.round(number, kind, gather)
    job.fire(EventType.END_RUN)
    answer, unobserved = results(tmp_path)
    assert unobserved == {}
    assert not answer.quarantined
    assert answer.ranking[-1] == "site-3"
    assert answer.clients == ("site-1", "site-2", "site-3")
    again = CoAst(horizon=1)
    for fl_round in replay(tmp_path / "run"):
        again.observe(fl_round)
        assert fl_round.weights == dict.fromkeys(STEPS, 4.0)
    assert again.assessment().scores == answer.scores


def test_scores_go_to_the_metric_receivers_of_flare(tmp_path):
    job = Job(tmp_path, ContributionObserver(options={"horizon": 1}))
    for number in range(3):
        job.round(number)
    from nvflare.apis.analytix import AnalyticsData
    from nvflare.apis.dxo import from_shareable

    data = [AnalyticsData.from_dxo(from_shareable(one)) for one in job.analytics]
    assert [one.step for one in data] == [1, 2, 3]
    assert {one.tag for one in data} == {"fedcoast/coast/score"}
    assert data[-1].value == results(tmp_path)[0].scores


def test_scores_go_to_tensorboard_too(tmp_path):
    job = Job(tmp_path, ContributionObserver(options={"horizon": 1}, tensorboard_to="logs", record_to="run"))
    for number in range(3):
        job.round(number)
    job.fire(EventType.END_RUN)
    assert list((tmp_path / "logs").glob("events.out.tfevents.*"))


def test_a_broken_upload_costs_only_its_site(tmp_path):
    job = Job(tmp_path, ContributionObserver(options={"horizon": 1}))
    for number in range(5):
        job.round(number, spoil=(lambda params: {"w": params["w"] * np.float32("nan")}) if number == 2 else None)
    answer, unobserved = results(tmp_path)
    assert unobserved == {}
    assert list(answer.quarantined) == [3]
    assert list(answer.quarantined[3]) == ["site-2"]


BROKEN = {
    "a layer that is missing": lambda params: {},
    "a layer too many": lambda params: {**params, "extra": np.ones(3, np.float32)},
    "another shape": lambda params: {"w": params["w"][:3]},
    "infinity": lambda params: {"w": params["w"] * np.float32("inf")},
}


@pytest.mark.parametrize("spoil", BROKEN.values(), ids=BROKEN.keys())
def test_every_broken_upload_costs_only_its_site(tmp_path, spoil):
    job = Job(tmp_path, ContributionObserver(options={"horizon": 1}))
    for number in range(5):
        job.round(number, spoil=spoil if number == 2 else None)
    answer, unobserved = results(tmp_path)
    assert unobserved == {}
    assert {number: list(of) for number, of in answer.quarantined.items()} == {3: ["site-2"]}


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_spoiled_the_average_names_its_site_and_the_next_round_is_observed(tmp_path, value):
    job = Job(tmp_path, ContributionObserver(options={"horizon": 1}))
    for number in range(5):
        before = job.model
        spoil = (lambda params: {"w": params["w"] * np.float32(value)}) if number == 2 else None
        job.round(number, spoil=spoil, end=np.float32(value) if number == 2 else None)
        job.model = before if number == 2 else job.model  # the server rolls back
    answer, unobserved = results(tmp_path)
    assert list(unobserved) == ["3"]
    assert "bad uploads: client 'site-2': layer 'w' must be finite" in unobserved["3"]["everyone"]
    assert "site-1" not in unobserved["3"]["everyone"]
    assert sorted(answer.credits) == [1, 2, 4]


@pytest.mark.parametrize("end", ["nonsense", "none"])
def test_a_round_without_a_new_model_is_marked_and_never_mixes_with_the_next(tmp_path, end):
    whole, gap = (Job(tmp_path / name, ContributionObserver(options={"horizon": 1})) for name in ("whole", "gap"))
    for number in range(5):
        if number != 2:
            whole.round(number)
        before = gap.model
        gap.round(number, spoil=(lambda params: {}) if number == 2 else None, end=end if number == 2 else None)
        gap.model = before if number == 2 else gap.model
    answer, unobserved = results(tmp_path / "gap")
    assert list(unobserved) == ["3"]
    assert "bad uploads: client 'site-2': layer 'w' is missing" in unobserved["3"]["everyone"]
    assert answer.credits == results(tmp_path / "whole")[0].credits


def test_an_upload_that_flare_did_not_accept_is_left_out(tmp_path):
    job = Job(tmp_path, ContributionObserver(options={"horizon": 1}))
    for number in range(3):
        job.round(number, accepted={"site-1": number != 1})
    answer, _ = results(tmp_path)
    assert answer.quarantined == {2: {"site-1": "FLARE did not accept the upload for aggregation; its log says why"}}


def test_an_event_that_cannot_be_read_never_reaches_the_job(tmp_path, caplog):
    job = Job(tmp_path, ContributionObserver())
    job.fire(AppEventType.BEFORE_TRAIN_TASK, TRAIN_SHAREABLE=None)
    job.fire(AppEventType.AFTER_CONTRIBUTION_ACCEPT, "site-1", TRAINING_RESULT="nonsense")
    assert "was not observed" in caplog.text
    job.round(0)
    assert results(tmp_path)[0].clients == ("site-1", "site-2", "site-3")


def test_wrong_options_are_refused_before_the_job_starts():
    with pytest.raises(BadSetting, match="method must be one of"):
        ContributionObserver(method="magic")
    with pytest.raises(BadSetting, match="keep must lie in"):
        ContributionObserver(options={"keep": 10})


def test_only_jobs_and_recipes_take_an_observer():
    job = FedJob(name="one")
    observer = add_observer(job)
    assert isinstance(observer, ContributionObserver)
    with pytest.raises(BadSetting, match="a FedJob or a recipe is wanted"):
        add_observer("job")
    with pytest.raises(BadSetting, match="must be a ContributionObserver"):
        add_observer(FedJob(name="two"), CoAst())
