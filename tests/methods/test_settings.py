"""Every option that means nothing is refused, with what was wanted and what came."""

import dataclasses
import json
from fractions import Fraction

import numpy as np
import pytest

from fedcoast import BadSetting, CoAst
from fedcoast.methods import CoAstConfig

KEEP = r"keep must lie in \(0, 1\], the share of each layer that votes; got "
STEP = "step must be a positive number, how far a vote moves a parameter, or 'avg'; got "
HORIZON = "horizon must be an integer of at least 1, the number of later rounds that a credit needs; got "
PAST = r"past_weight must lie in \[0, 1\], the share of the agreement with earlier rounds that is subtracted; got "
ULPS = "ulp_tolerance must be a number of at least 0; got "
ROUNDS = r"score_rounds must be a slice such as slice\(10, None\), in steps of one; got "
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
        yield "ulp_tolerance", value, ULPS
    for value in [*NO_NUMBER, -0.1, 1.1, 50]:
        yield "past_weight", value, PAST
    for value in [None, 3, "10:", (10, None), range(3), *NO_SLICES]:
        yield "score_rounds", value, ROUNDS
    words = {
        "signal": "'ballot', 'pruned', 'parameters', 'update'",
        "reference": "'others', 'movement', 'votes'",
        "baseline": "'idle', 'none'",
        "incomplete_rounds": "'drop', 'truncate'",
        "tiny_layers": "'one', 'none', 'raw'",
        "bad_uploads": "'raise', 'quarantine'",
    }
    for option, listed in words.items():
        for value in NO_WORD:
            yield option, value, f"{option} must be one of {listed}; got "
    for value in [None, 3, [], (), [3], [None], ["a", 3], b"all", {"all"}, np.array(["all"]), True]:
        yield "layers", value, "layers must be 'all', 'first\\+head', 'head', patterns or a function of the name; got "


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
    with pytest.raises(BadSetting, match=r'tiny_layers="raw" has no votes to count; use reference="movement"'):
        CoAst(tiny_layers="raw", reference="votes")


@pytest.mark.parametrize("settings", [
    {"keep": 1}, {"keep": 1e-300}, {"keep": np.float64(0.1)}, {"step": 5}, {"step": 1e-300},
    {"ulp_tolerance": 0}, {"ulp_tolerance": 2.5},
    {"horizon": 1000}, {"score_rounds": slice(-5, -1)}, {"score_rounds": slice(0, 0, 1)},
])  # fmt: skip
def test_values_at_the_edge_are_taken(settings):
    option, value = next(iter(settings.items()))
    assert getattr(CoAst(**settings).config, option) == value


def test_settings_in_answers_are_the_configuration():
    assert list(CoAst().settings) == list(CoAstConfig.options())
    assert CoAst(layers=["a*"], score_rounds=slice(3, None)).assessment().settings == {
        **CoAst().settings,
        "layers": ["a*"],
        "score_rounds": [3, None],
    }


def test_settings_make_the_same_configuration_again():
    config = CoAstConfig(step="avg", layers=["a*", "b"], score_rounds=slice(-3, None), past_weight=0)
    assert CoAstConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_what_costs_resources_but_changes_no_score_is_no_setting():
    assert not {"num_threads", "spill_dir", "memory_limit"} & {*CoAst(num_threads=1).settings}


def test_a_configuration_can_be_given_whole_and_changed():
    config = CoAstConfig(horizon=5)
    assert CoAst(config).config is not CoAst().config
    assert CoAst(config, keep=0.2).config == CoAstConfig(horizon=5, keep=0.2)
    with pytest.raises(BadSetting, match=r"CoAst are keywords, such as CoAst\(keep=…\), or a CoAstConfig; got 0.1"):
        CoAst(0.1)


def test_every_option_has_help_and_stands_in_the_docstring():
    for name, info in CoAstConfig.options().items():
        assert info.help.endswith(".")
        assert f"\n{name} = {info.default!r}\n    {info.help}" in CoAstConfig.__doc__


def test_a_configuration_cannot_be_changed_after_its_check():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CoAst().config.keep = 10
