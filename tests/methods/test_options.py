"""Every built-in method declares its options once, and everything else is read off that."""

import dataclasses
import inspect
import json
from functools import partial

import pytest

from fedcoast import BadSetting
from fedcoast.methods import CGSV, METHODS, CoAst, TMCShapley
from fedcoast.methods.configured import AssessorConfig, ConfiguredAssessor
from fedcoast.methods.options import option
from fedcoast.methods.registry import config_of
from fedcoast.storage.old_settings import RENAMED, translated
from fixture_q import Quadratic

BUILT_IN = [name for name, method in METHODS.items() if method.make.__module__.startswith(("fedcoast", "functools"))]


def made(name, **options):
    needs_utility = {"utility", "gradient"} & set(METHODS[name].needs)
    return METHODS[name].make(**({"utility": Quadratic()} if needs_utility else {}), **options)


@pytest.mark.parametrize("name", BUILT_IN)
def test_settings_and_glossary_and_constructor_say_the_same_options(name):
    config = METHODS[name].config
    options = set(config.options())
    assert "bad_uploads" in options
    assert set(made(name).assessment().settings) - {"utility"} == options == set(config.glossary())
    maker = METHODS[name].make
    maker = maker.func if isinstance(maker, partial) else maker
    if issubclass(maker, ConfiguredAssessor):
        assert options <= set(inspect.signature(maker).parameters)


@pytest.mark.parametrize("name", BUILT_IN)
def test_an_answer_s_settings_make_the_same_configuration_again(name):
    assessor = made(name, bad_uploads="raise")
    settings = json.loads(json.dumps(assessor.assessment().settings))
    assert config_of(name, settings) == assessor.config


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_option_has_help_of_one_line(name):
    for one, help_line in METHODS[name].config.glossary().items():
        assert help_line.endswith("."), one
        assert "\n" not in help_line


def test_options_are_read_from_text_by_their_type():
    config = METHODS["gtg-shapley"].config
    assert config.read_texts(
        {"permutations": "none", "round_tol": "0.5", "seed": "3", "normalise": "positive-part"}
    ) == {
        "permutations": None,
        "round_tol": 0.5,
        "seed": 3,
        "normalise": "positive-part",
    }
    with pytest.raises(BadSetting, match=r"no option 'within'; there are .*did you mean within_tol\?"):
        config.read_texts({"within": "1"})


@dataclasses.dataclass(frozen=True, kw_only=True)
class UncheckedConfig(AssessorConfig):
    """As a package of somebody else may write it: options with types, and no checks of its own."""

    deadzone: float = option(0.0, "Entries that move less have no sign.")
    samples: int | None = option(None, "How many are drawn; none for all.")


class Unchecked(ConfiguredAssessor[UncheckedConfig]):
    method = "unchecked"

    def _step(self, view, state):
        return {view.number: {client: self.config.deadzone for client, _ in view.uploads()}}, state


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ({"deadzone": "x"}, "deadzone must be a number; got 'x'"),
        ({"deadzone": "none"}, "deadzone must be a number; got 'none'"),
        ({"samples": "0.5"}, "samples must be an integer, or None; got '0.5'"),
    ],
)
def test_a_text_is_refused_where_an_option_is_a_number_without_a_check_by_the_method(texts, problem):
    values = UncheckedConfig.read_texts(texts)
    with pytest.raises(BadSetting, match=problem):
        Unchecked(**values)
    with pytest.raises(BadSetting, match=problem):
        Unchecked(UncheckedConfig(), **values)
    fitting = Unchecked(**UncheckedConfig.read_texts({"deadzone": "2", "samples": "none"}))
    assert (fitting.config.deadzone, fitting.config.samples) == (2, None)


def test_a_configuration_can_be_given_whole_and_changed():
    config = CGSV(momentum=0.5).config
    assert CGSV(config).config == config
    assert CGSV(config, floor=0.1).config == dataclasses.replace(config, floor=0.1)
    assert TMCShapley(Quadratic(), TMCShapley(Quadratic(), seed=3).config).settings["seed"] == 3
    with pytest.raises(BadSetting, match=r"options of CGSV are keywords, such as CGSV.*, or a CGSVConfig; got 0.5"):
        CGSV(0.5)
    with pytest.raises(BadSetting, match="or a CGSVConfig"):
        CGSV(AssessorConfig())


@pytest.mark.parametrize("method", RENAMED)
def test_old_names_of_options_are_read_in_every_method(method):
    new_names = set(RENAMED[method].values())
    assert new_names <= set(METHODS[method].config.options())
    settings = made(method).settings
    old = {new: name for name, new in RENAMED[method].items()}
    assert translated(method, {old.get(name, name): value for name, value in settings.items()}) == settings


def test_coast_keeps_resources_apart_from_its_options():
    resources = {"num_threads", "spill_dir", "memory_limit", "track_layers"}
    assert resources <= set(inspect.signature(CoAst).parameters)
    assert not resources & set(METHODS["coast"].config.options())
