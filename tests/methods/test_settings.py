"""Every option that means nothing is refused, with what was wanted and what came."""

import inspect
from fractions import Fraction

import numpy as np
import pytest

from fedcoast import BadSetting, CoAst

KEEP = r"keep must lie in \(0, 1\], the share of each layer that votes; got "
STEP = "step must be a positive number, how far a vote moves a parameter, or 'avg'; got "
HORIZON = "horizon must be an integer of at least 1, the rounds of future; got "
PAST = r"past must lie in \[0, 1\], the share of the agreement with earlier rounds that is taken off; got "
ULPS = "ulps must be a number of at least 0; got "
ROUNDS = r"rounds must be a slice such as slice\(10, None\), in steps of one; got "
NO_NUMBER = [
    None,
    "0.1",
    True,
    float("nan"),
    float("inf"),
    -float("inf"),
    [0.1],
    np.array([0.1, 0.2]),
    1j,
    10**400,
    Fraction(1, 2),
]
NO_WORD = [None, "", "x", 3, True, ["ballot"], np.array(["ballot", "update"]), b"idle", "Ballot", "none "]

NO_SLICES = [slice(None, None, 2), slice(None, None, -1), slice("a", None), slice(1.0, None), slice(None, True),
             slice(None, [3]), slice(np.int64(1), None), slice(None, None, "x")]  # fmt: skip


def cases():
    for value in [*NO_NUMBER, 0, -0.1, 1.1, 100, 1000, np.float32(0.1)]:
        yield "keep", value, KEEP
    for value in [*NO_NUMBER, 0, -0.02, "AVG", "mean"]:
        yield "step", value, STEP
    for value in [*(value for value in NO_NUMBER if type(value) is not int), 0, -1, 1.0, 2.5, np.int64(2)]:
        yield "horizon", value, HORIZON
    for value in [*NO_NUMBER, -1, -1e-9]:
        yield "ulps", value, ULPS
    for value in [*NO_NUMBER, -0.1, 1.1, 50]:
        yield "past", value, PAST
    for value in [None, 3, "10:", (10, None), range(3), *NO_SLICES]:
        yield "rounds", value, ROUNDS
    words = {
        "target": "'ballot', 'pruned', 'parameters', 'update'",
        "drift": "'movement', 'votes'",
        "baseline": "'idle', 'none'",
        "tail": "'drop', 'truncate'",
        "small": "'one', 'none', 'raw'",
    }
    for option, listed in words.items():
        for value in NO_WORD:
            yield option, value, f"{option} must be one of {listed}; got "
    for value in NO_WORD:
        yield "bad_uploads", value, "bad uploads either 'raise' or go to 'quarantine'; got "
    for value in [None, 3, [], (), [3], [None], ["a", 3], b"all", {"all"}, np.array(["all"]), True]:
        yield "layers", value, "layers must be 'all', 'ends', 'head', patterns or a function of the name; got "


CASES = list(cases())


@pytest.mark.parametrize(("option", "value", "message"), CASES, ids=[f"{o}={v!r:.24}" for o, v, _ in CASES])
def test_a_value_that_means_nothing_is_refused_with_what_was_wanted_and_what_came(option, value, message):
    with pytest.raises(BadSetting, match=f"^{message}") as caught:
        CoAst(**{option: value})
    assert str(caught.value).partition("; got ")[2].startswith(repr(value))


def test_a_share_given_in_per_cent_is_understood_and_refused():
    for given, meant in ((10, "0.10"), (100, "1.00"), (2.5, "0.03")):
        with pytest.raises(BadSetting, match=rf"got {given} \(did you mean {meant}\?\)$"):
            CoAst(keep=given)
    with pytest.raises(BadSetting, match=r"got 1000$"):
        CoAst(keep=1000)


def test_unpruned_tensors_have_no_votes_to_count():
    with pytest.raises(BadSetting, match=r'small="raw" has no votes to count; use drift="movement"'):
        CoAst(small="raw", drift="votes")


@pytest.mark.parametrize("settings", [
    {"keep": 1}, {"keep": 1e-300}, {"keep": np.float64(0.1)}, {"step": 5}, {"step": 1e-300}, {"ulps": 0}, {"ulps": 2.5},
    {"horizon": 1000}, {"rounds": slice(-5, -1)}, {"rounds": slice(0, 0, 1)},
])  # fmt: skip
def test_values_at_the_edge_are_taken(settings):
    option, value = next(iter(settings.items()))
    assert getattr(CoAst(**settings), option) == value


def test_every_option_that_can_change_a_score_is_in_the_settings():
    options = set(inspect.signature(CoAst).parameters) - {"threads", "spill", "memory"}
    assert {*CoAst().settings, "bad_uploads"} == options
    assert CoAst().assessment().settings.keys() == options


def test_the_docstring_explains_every_option():
    explained = [
        line.split()[0] for line in CoAst.__doc__.splitlines() if line.startswith("    ") and line[4:5].strip()
    ]
    assert [option for option in inspect.signature(CoAst).parameters if option not in explained] == []
