"""What every tracker does, shown on one that logs to a dictionary; and how names are made safe."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcoast import BadRound, BadSetting, CoAst, Recorder, Round, replay
from fedcoast.integrations.trackers import MLflow, TensorBoard, Tracker, WandB
from fedcoast.integrations.trackers.safe_names import safe_name
from fedcoast.testing import check_assessor
from federations import show
from integrations.trackers.federation import NASTY, check_log, coast, rounds


class Notebook(Tracker):
    """Logs to a dictionary that outlives it."""

    def __init__(self, assessor, pages=None, fails_in=None, **options):
        super().__init__(assessor, **options)
        self.pages = {} if pages is None else pages
        self.words, self.fails_in, self.tries, self.ended = {}, fails_in, 0, 0

    def _open(self):
        if self.fails_in == "open":
            raise ConnectionError("no route to host")
        return max((step for steps in self.pages.values() for step in steps), default=None)

    def _write(self, step, numbers, words):
        self.tries += 1
        if step == self.fails_in:
            raise OSError(28, "No space left on device")
        for tag, value in numbers.items():
            assert step not in self.pages.setdefault(tag, {}), "a step is logged once"
            self.pages[tag][step] = value
        self.words.update(words)

    def _end(self):
        self.ended += 1
        if self.fails_in == "end":
            raise OSError("gone")


def safe(client):
    return safe_name(client, Notebook.allowed)


def test_everything_an_assessor_says_is_logged_and_its_answer_is_not_touched():
    tracker = Notebook(coast())
    assert show(tracker, rounds()) == show(coast(), rounds())
    check_log(tracker.pages, safe)
    assert tracker.words[f"fedcoast/name/{safe('a/b')}"] == "a/b"
    assert tracker.words[f"fedcoast/name/{safe(NASTY[-2])}"] == r"\ud800"
    assert "fedcoast/name/berlin" not in tracker.words


def test_a_tracker_keeps_the_contract_of_the_assessor_in_it():
    check_assessor(lambda **options: Notebook(CoAst(**options)))


def test_trackers_can_be_stacked():
    inner = Notebook(coast())
    outer = Notebook(inner)
    show(outer, rounds())
    assert inner.pages == outer.pages
    assert (outer.method, outer.last_round, outer.settings["keep"]) == ("coast", 6, 0.3)
    outer.close()
    assert (outer.ended, inner.ended) == (1, 1)


@pytest.mark.parametrize("fails_in", ["open", 1, 4])
def test_a_tracker_that_fails_says_so_once_and_assessing_goes_on(caplog, fails_in):
    tracker = Notebook(coast(), fails_in=fails_in)
    assert show(tracker, rounds()) == show(coast(), rounds())
    message = [record.message for record in caplog.records if "stopped logging" in record.message]
    assert len(message) == 1
    assert tracker.failure.startswith(("OSError", "ConnectionError"))
    assert tracker.failure in message[0]
    assert tracker.tries == (0 if fails_in == "open" else fails_in)
    tracker.close()
    assert tracker.ended == (0 if fails_in == "open" else 1)


def test_a_tracker_that_fails_when_it_is_closed_says_so(caplog):
    with Notebook(coast(), fails_in="end") as tracker:
        show(tracker, rounds())
    assert "stopped logging at its end (OSError: gone)" in caplog.text
    tracker.close()
    assert tracker.ended == 1


def test_a_closed_tracker_goes_on_assessing():
    tracker = Notebook(coast())
    show(tracker, rounds()[:3])
    tracker.close()
    assert show(tracker, rounds()[3:]) == show(coast(), rounds())
    assert tracker.tries == 3


def test_an_error_of_the_assessor_is_raised_and_nothing_is_logged():
    tracker = Notebook(coast())
    show(tracker, rounds()[:2])
    with pytest.raises(BadRound, match="must increase"):
        tracker.observe(rounds()[0])
    assert (tracker.tries, tracker.failure) == (2, "")


def test_while_the_assessor_has_no_answer_nothing_is_logged_and_later_rounds_are(caplog):
    class Late(CoAst):
        def assessment(self):
            if self.last_round in (1, 2):
                raise BadSetting("not everyone was heard")
            return super().assessment()

    tracker = Notebook(Late())
    show(tracker, rounds())
    assert tracker.failure == ""
    assert {step for steps in tracker.pages.values() for step in steps} == {r.number for r in rounds()} - {1, 2}
    assert caplog.text.count("logs nothing while the method has no answer: not everyone was heard") == 1


@pytest.mark.parametrize("restored", [True, False])
def test_a_resumed_run_goes_on_after_the_last_step_that_is_there(tmp_path, caplog, restored):
    first = Notebook(coast())
    show(first, rounds()[:4])
    first.save(tmp_path / "state")
    second = Notebook(coast(), first.pages)
    if restored:
        second.restore(tmp_path / "state")
        assert second.last_round == 4
    show(second, rounds()[4 if restored else 0 :])
    check_log(first.pages, safe)
    assert caplog.text.count("already holds the rounds up to 4") == (0 if restored else 1)


def test_what_a_killed_tracker_missed_is_logged_when_the_recording_is_shown_again(tmp_path):
    first = Notebook(coast())
    with Recorder(tmp_path / "run") as recorder:
        for fl_round in rounds()[:5]:
            recorder.observe(fl_round)
    show(first, rounds()[:2])
    second = Notebook(coast(), first.pages)
    show(second, [*replay(tmp_path / "run"), rounds()[5]])
    assert set(first.pages["fedcoast/round/pending"]) == {1, 2, 3, 4, 5, 6}
    assert first.pages["fedcoast/score/berlin"][6] == show(coast(), rounds()).scores["berlin"]


def test_the_head_of_the_chain_is_logged_where_the_recording_cannot_reach(tmp_path):
    with Recorder(tmp_path / "run") as recorder:
        tracker = Notebook(coast(), recorder=recorder)
        for fl_round in rounds():
            recorder.observe(fl_round)
            tracker.observe(fl_round)
            assert tracker.words["fedcoast/chain/head"] == f"{recorder.head} (round {fl_round.number})"


def test_a_score_that_is_no_number_is_not_logged():
    tracker = Notebook(coast())
    for fl_round in rounds()[:1]:
        tracker.observe(
            Round(1, fl_round.start, fl_round.local, fl_round.end, metrics={"loss": float("nan"), "top": 1.0})
        )
    assert "fedcoast/metric/top" in tracker.pages
    assert "fedcoast/metric/loss" not in tracker.pages


@pytest.mark.parametrize("tracker", [TensorBoard, MLflow, WandB])
def test_only_assessors_are_tracked(tmp_path, tracker):
    with pytest.raises(BadSetting, match="a tracker logs the answers of an assessor"):
        tracker(CoAst, str(tmp_path))
    with pytest.raises(BadSetting, match="recorder must be the Recorder"):
        tracker(CoAst(), str(tmp_path), recorder=tmp_path)


@given(
    st.sets(st.one_of(st.text(), st.integers(), st.sampled_from(NASTY), st.from_regex(r"a-[0-9a-f]{16}")), min_size=2),
    st.sampled_from([TensorBoard.allowed, MLflow.allowed, WandB.allowed]),
)
def test_no_two_clients_ever_share_a_name_and_every_name_is_allowed(clients, allowed):
    import re

    names = [safe_name(client, allowed) for client in clients]
    assert len(set(names)) == len(clients)
    assert all(re.fullmatch(rf"[{allowed}]{{1,100}}", name) for name in names)
    marked = {safe_name(name, allowed) for name in names}
    assert len(marked) == len(names), "not even a client that calls itself as another is called"
