"""A recorded run that was torn or altered ends in our own errors, shows every round before the damage, and no more."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import torn
from fedcoast import BadFile, BadRound, BadUpload, CoAst, FedcoastError, Recorder, read_about, replay
from fedcoast.storage.tensors import read_tensors
from federations import federation, round_bits, show, without

LAYERS = {"w": (4, 5), "b": (5,)}
ROUNDS = federation(seed=2, rounds=3, layers=LAYERS)
SECOND = "rounds/0000000002"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded") / "run"
    with Recorder(folder, about={"what": "three rounds"}) as recorder:
        for fl_round in ROUNDS:
            recorder.observe(fl_round)
    return folder


@pytest.fixture
def run(recorded, tmp_path):
    return shutil.copytree(recorded, tmp_path / "run")


def coast(**settings):
    return CoAst(keep=0.3, horizon=1, **settings)


# One client's file


@pytest.mark.parametrize("case", torn.SAFETENSORS)
def test_a_file_that_is_no_safetensors_is_refused_by_our_own_error(case, tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(torn.SAFETENSORS[case])
    with pytest.raises(BadFile, match=r"model\.safetensors"):
        read_tensors(file)


def spoilt_client_files(good):
    yield from ((f"torn after {length} bytes", good[:length]) for length in torn.cuts(good))
    yield from torn.SAFETENSORS.items()


def quarantines_only_its_client(run):
    assessment = show(coast(), replay(run))
    away = show(coast(), [ROUNDS[0], without(ROUNDS[1], "bob"), ROUNDS[2]])
    assert (assessment.scores, assessment.credits) == (away.scores, away.credits)
    assert assessment.quarantined.keys() == {2}
    assert assessment.quarantined[2].keys() == {"bob"}
    (second, _) = replay(run, after=1)
    with pytest.raises(BadUpload, match=r"^client 'bob': round 2, "):
        coast(bad_uploads="raise").observe(second)


def test_a_torn_or_altered_upload_costs_only_its_client(run):
    file = run / SECOND / "client-000001.safetensors"
    good = file.read_bytes()
    for _, content in spoilt_client_files(good):
        file.write_bytes(content)
        quarantines_only_its_client(run)
    file.write_bytes(good)
    assert [round_bits(fl_round) for fl_round in replay(run)] == [round_bits(fl_round) for fl_round in ROUNDS]


def test_an_upload_that_is_gone_costs_only_its_client(run):
    file = run / SECOND / "client-000001.safetensors"
    file.unlink()
    quarantines_only_its_client(run)
    file.mkdir()
    quarantines_only_its_client(run)


@pytest.mark.parametrize("change", [
    lambda model: {"w": model["w"]},
    lambda model: {**model, "extra": model["w"]},
    lambda model: {**model, "w": model["w"].T.copy()},
    lambda model: {**model, "w": model["w"].astype(np.int64)},
    lambda model: {**model, "w": model["w"] * np.float32("nan")},
])  # fmt: skip
def test_an_upload_of_another_model_costs_only_its_client(run, change):
    file = run / SECOND / "client-000001.safetensors"
    save_file(change(load_file(file)), file)
    quarantines_only_its_client(run)


# The global models


def fails_at_the_second_round(run, error=FedcoastError):
    """The first round is shown as it was, the second is refused by our own error, in reading or in use."""
    rounds = replay(run)
    assert round_bits(next(rounds)) == round_bits(ROUNDS[0])
    with pytest.raises(error):
        coast().observe(next(rounds))


@pytest.mark.parametrize("file", ["end.safetensors"])
def test_a_torn_or_altered_global_model_is_refused_by_our_own_error(run, file):
    path = run / SECOND / file
    good = path.read_bytes()
    for _, content in spoilt_client_files(good):
        path.write_bytes(content)
        fails_at_the_second_round(run, BadFile)
    path.unlink()
    fails_at_the_second_round(run, BadFile)
    path.write_bytes(good)
    assert len(list(replay(run))) == 3


def test_a_global_model_of_another_shape_is_refused(run):
    path = run / SECOND / "end.safetensors"
    save_file({name: array.T.copy() for name, array in load_file(path).items()}, path)
    fails_at_the_second_round(run, BadRound)


def test_a_round_that_goes_on_from_one_that_is_gone_is_refused_and_not_guessed(run):
    shutil.rmtree(run / SECOND)
    with pytest.raises(BadFile, match="goes on from the end of round 2, which is gone"):
        list(replay(run))


def test_the_first_round_may_not_go_on_from_anything(run):
    alter(run, "1", lambda facts: facts | {"start": "end of round 0"})
    with pytest.raises(BadFile, match="which is gone"):
        list(replay(run))


# round.json


def alter(run, number, change):
    path = run / "rounds" / number.zfill(10) / "round.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))


KEYS = ["number", "start", "end", "pruned", "metrics", "layers", "clients", "quarantined"]


def in_first(key, **changes):
    """One entry of a list of the facts changed."""
    return lambda facts: facts | {key: [facts[key][0] | changes, *facts[key][1:]]}


def without_key(key, inner):
    return lambda facts: facts | {key: [{k: v for k, v in facts[key][0].items() if k != inner}, *facts[key][1:]]}


ROUND_META = {
    **{f"no {key}": lambda facts, key=key: {k: v for k, v in facts.items() if k != key} for key in KEYS},
    **{
        f"{key} is {value!r}": lambda facts, key=key, value=value: facts | {key: value}
        for key in KEYS
        for value in (3, -1, True, "x", 2.0, [3], ["x"], [None], {"x": 1}, [{"x": 1}], None)
        if (key, value) not in [("pruned", None), ("metrics", {"x": 1})]
    },
    "a list": lambda facts: [facts],
    "a number": lambda facts: 3,
    "null": lambda facts: None,
    "the number of another round": lambda facts: facts | {"number": 7},
    "a metric that is a word": lambda facts: facts | {"metrics": {"accuracy": "high"}},
    "ballots of a share that is none": lambda facts: facts | {"pruned": 10},
    **{
        f"{key} in {name!r}": lambda facts, key=key, name=name: facts | {key: name}
        for key in ("start", "end")
        for name in ("../0000000001/end.safetensors", "/etc/passwd", "..", ".", "", "END.safetensors", "end.pkl",
                     "sub/end.safetensors", "end.safetensors\n", "end.safetensors/", "gone.safetensors",
                     "end of round 9", "end of round x", "end of round -1", "end of round 1\n")
    },
    **{
        f"a client's file in {name!r}": in_first("clients", file=name)
        for name in ("../0000000001/client-000000.safetensors", "/etc/passwd", "", None, 3, "client-000000.pkl",
                     "..\\x.safetensors", "a/b.safetensors", ["client-000000.safetensors"])
    },
    **{
        f"a client who is {client!r}": in_first("clients", client=client)
        for client in (None, "bob", 3, {}, {"name": "bob"}, {"type": "str"}, {"name": 3, "type": "str"},
                       {"name": "x", "type": "int"}, {"name": "1.5", "type": "int"}, {"name": "", "type": "int"},
                       {"name": "9" * 5000, "type": "int"}, {"name": "bob", "type": "bytes"},
                       {"name": None, "type": "str"}, {"name": ["bob"], "type": "str"}, [["name", "bob"]])
    },
    "a client without a file": without_key("clients", "file"),
    "a client without a weight": without_key("clients", "weight"),
    "a client without a name": without_key("clients", "client"),
    **{
        f"a weight {weight!r}": lambda facts, weight=weight: facts
        | {"clients": [one | {"weight": weight} for one in facts["clients"]]}
        for weight in (-1, "1", [1], {}, float("nan"), float("inf"), True)
    },
    **{
        f"a layer's {key} is {value!r}": in_first("layers", **{key: value})
        for key, values in {
            "name": (None, 3, ["w"], {}),
            "shape": (None, 3, "45", [4.0, 5.0], [None]),
            "kind": (None, 3, "float8", "object", ["float32"]),
            "votes": (None, 3, "yes"),
        }.items()
        for value in values
    },
    **{f"a layer without {key}": without_key("layers", key) for key in ("name", "shape", "kind", "votes")},
    "a reason that is none": lambda facts: facts
    | {"quarantined": [{"client": {"name": "dora", "type": "str"}, "reason": None}]},
    "someone quarantined who is none": lambda facts: facts | {"quarantined": [{"client": "dora", "reason": "bad"}]},
    "nobody at all": lambda facts: facts | {"clients": []},
}  # fmt: skip


@pytest.mark.parametrize("case", ROUND_META)
def test_altered_facts_of_a_round_are_refused_by_our_own_error(recorded, case):
    path = recorded / SECOND / "round.json"
    good = path.read_bytes()
    alter(recorded, "2", ROUND_META[case])
    try:
        fails_at_the_second_round(recorded)
    finally:
        path.write_bytes(good)


def test_torn_facts_of_a_round_are_refused_by_our_own_error(run):
    path = run / SECOND / "round.json"
    good = path.read_bytes()
    contents = [good[:length] for length in torn.cuts(good)]
    contents += [b"\xff\xfe", b"[" * 100_000, b"\0", good + b"}", b"NaN", b"null"]
    for content in contents:
        path.write_bytes(content)
        fails_at_the_second_round(run, BadFile)
    path.unlink()
    fails_at_the_second_round(run, BadFile)


def test_no_file_outside_the_rounds_own_folder_is_read(run, tmp_path):
    shutil.copy(run / SECOND / "end.safetensors", run / "end.safetensors")
    shutil.copy(run / SECOND / "end.safetensors", tmp_path / "end.safetensors")
    for name in ("../../end.safetensors", str(tmp_path / "end.safetensors")):
        alter(run, "2", lambda facts, name=name: facts | {"end": name})
        fails_at_the_second_round(run, BadFile)


def test_two_rounds_cannot_be_exchanged_unnoticed(run):
    first, second = run / "rounds" / "0000000001", run / SECOND
    first.rename(run / "aside")
    second.rename(first)
    (run / "aside").rename(second)
    with pytest.raises(BadFile, match="says that this is round 2"):
        list(replay(run))


def test_ballots_that_were_altered_cost_only_their_client(tmp_path):
    run = tmp_path / "run"
    with Recorder(run, ballot_keep=0.3) as recorder:
        for fl_round in ROUNDS:
            recorder.observe(fl_round)
    file = run / SECOND / "client-000001.safetensors"
    good = load_file(file)
    for bad in (
        {"w": good["w"]},
        {**good, "w": good["w"][:, :-1].copy()},
        {**good, "w": good["w"].astype(np.int32)},
        {**good, "w": np.zeros((2, 1000), np.uint8)},
    ):
        save_file(bad, file)
        quarantines_only_its_client(run)


# run.json


ABOUTS = {
    "torn": b'{"format": "fedco',
    "empty": b"",
    "not text": b"\xff\xfe\x00",
    "a list": b"[]",
    "null": b"null",
    "deep": b"[" * 100_000,
    "of another format": b'{"format": "other-run", "version": 1, "about": {}}',
    "of no format": b'{"version": 1, "about": {}}',
    "of a later version": b'{"format": "fedcoast-run", "version": 2, "about": {}}',
    "of a version in words": b'{"format": "fedcoast-run", "version": "1", "about": {}}',
    "of no version": b'{"format": "fedcoast-run", "about": {}}',
    "about nothing": b'{"format": "fedcoast-run", "version": 1}',
    "about a list": b'{"format": "fedcoast-run", "version": 1, "about": []}',
}


@pytest.mark.parametrize("case", ABOUTS)
def test_a_run_of_another_format_is_refused_by_our_own_error_and_left_alone(run, case):
    (run / "run.json").write_bytes(ABOUTS[case])
    before = sorted(run.rglob("*"))
    for read in (lambda: list(replay(run)), lambda: read_about(run), lambda: Recorder(run, about={})):
        with pytest.raises(BadFile, match=r"run\.json"):
            read()
    assert sorted(path for path in run.rglob("*") if path.name != ".lock") == [p for p in before if p.name != ".lock"]
    assert (run / "run.json").read_bytes() == ABOUTS[case]


def test_a_later_version_is_named(run):
    (run / "run.json").write_bytes(ABOUTS["of a later version"])
    with pytest.raises(BadFile, match="is of version 2; this fedcoast reads version 1"):
        read_about(run)


def test_a_run_without_its_rounds_is_refused(run):
    shutil.rmtree(run / "rounds")
    with pytest.raises(BadFile, match="rounds cannot be read"):
        list(replay(run))


def test_a_recorder_refuses_a_run_whose_last_round_is_torn_and_lets_go_of_the_folder(run):
    path = run / "rounds" / "0000000003" / "end.safetensors"
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    with pytest.raises(BadFile):
        Recorder(run)
    path.write_bytes(good)
    with Recorder(run) as recorder:
        assert recorder.last_round == 3


@pytest.mark.parametrize("content", [None, "file"])
def test_a_folder_that_is_no_run_is_refused(tmp_path, content):
    path = tmp_path / "nothing"
    if content:
        path.write_text(content)
    with pytest.raises(BadFile, match="is not a folder"):
        replay(path)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(BadFile, match="neither a recorded run"):
        replay(tmp_path)
