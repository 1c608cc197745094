"""Which methods a command runs, and the validation data that some of them need."""

import importlib
import sys
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from fedcoast.errors import BadSetting, FedcoastError, MissingExtra, require
from fedcoast.methods import METHODS, Assessor
from fedcoast.methods.coalition.utility import Evaluator
from fedcoast.methods.remaking import NEEDS_DATA
from fedcoast.rounds.round import Policy
from fedcoast.storage import read_about
from fedcoast.storage.run_folder import is_run

Measure = Literal["loss", "accuracy"]
OwnUtility = Annotated[
    str | None,
    typer.Option("--utility", metavar="MODULE:FUNCTION", help="Your function that values a model, larger is better."),
]


def method_names(methods: str) -> list[str]:
    """The requested names, each once.

    >>> method_names("cosine, norm,cosine")
    ['cosine', 'norm']
    """
    if methods.strip() == "all":
        return list(METHODS)
    names = list(dict.fromkeys(name.strip() for name in methods.split(",") if name.strip()))
    for name in names or [methods]:
        if name not in METHODS:
            near = get_close_matches(name, METHODS, n=1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            raise BadSetting(f"methods must be all, or names among {', '.join(METHODS)}; got {name!r}{hint}")
    return names


def prepare_methods(
    run: Path, names: list[str], measure: Measure, bad_uploads: Policy, utility: str | None = None
) -> tuple[dict[str, Assessor], dict[str, str]]:
    """The methods that can run, and why the others cannot."""
    assessors: dict[str, Assessor] = {}
    unavailable: dict[str, str] = {}
    evaluator: Evaluator | None = None
    for name in names:
        try:
            if _needs_utility(name):
                evaluator = evaluator or _evaluator(run, measure, utility)  # shared by all
            options = {"bad_uploads": bad_uploads} | ({"utility": evaluator} if _needs_utility(name) else {})
            assessors[name] = METHODS[name].make(**options)
        except FedcoastError as error:
            unavailable[name] = str(error)
    return assessors, unavailable


def make_method(
    run: Path, name: str, options: dict[str, Any], measure: Measure, utility: str | None = None
) -> Assessor:
    """One method with options of its own."""
    try:
        extra = {"utility": _evaluator(run, measure, utility)} if _needs_utility(name) else {}
        return METHODS[name].make(**extra, **options)
    except MissingExtra:
        raise
    except FedcoastError as error:
        raise BadSetting(f"{name} cannot assess {run}: {error}") from error


def _needs_utility(name: str) -> bool:
    return bool({"utility", "gradient"} & set(METHODS[name].needs))


def _evaluator(run: Path, measure: Measure, utility: str | None) -> Evaluator:
    if utility is not None:
        return Evaluator.of(load_utility(utility))
    if not is_run(run) or "experiment" not in read_about(run):
        raise BadSetting(NEEDS_DATA)
    for module in ("torch", "sklearn"):
        require(module, extra="lab")
    from fedcoast.simulation.utility import utility_for

    return Evaluator.of(utility_for(read_about(run), measure))


def load_utility(name: str) -> Any:
    """The function that `module:function` names; the current folder is searched first."""
    module, colon, function = name.partition(":")
    if not colon or not module or not function:
        raise BadSetting(f"utility must be MODULE:FUNCTION, such as validation:accuracy; got {name!r}")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), function)
    except ImportError as error:
        raise BadSetting(f"utility: the module {module!r} cannot be imported ({error})") from error
    except AttributeError:
        raise BadSetting(f"utility: {module} has no {function!r}") from None
    finally:
        sys.path.pop(0)
    return found
