"""Names that readers did not understand are gone, and stay gone: from the code, the command line and the guides.

Not every use of such a word is a riddle: files keep the keys that they always had, and old settings are translated.
Each exception says why.
"""

import ast
import re
from pathlib import Path

import pytest
import typer

from fedcoast import METHODS
from fedcoast.cli import app

ROOT = Path(__file__).parent.parent

# Classes, functions, modules: today they have the words of the field.
NAMES = [
    "Examiner",
    "Examination",
    "Held",
    "Keeper",
    "Keeping",
    "Sheaf",
    "Layout",
    "Kept",
    "Answering",
    "Hands",
    "Seating",
    "Intake",
    "Witness",
    "Seen",
    "Roll",
    "call_roll",
    "Roster",
    "Tap",
    "introduce",
    "Crew",
    "Bench",
    "_sit_down",
    "Ground",
    "holdings",
    "beliefs",
    "circumstances",
    "go_on",
    "Question",
    "Answer",
    "Slot",
    "Board",
    "judgement",
    "Account",
    "Standing",
    "survey",
    "conclude",
    "gate",
    "canvas",
    "seal",
    "Follower",
    "papers",
    "Walk",
    "tallies",
    "evening",
    "evened",
    "strangers",
    "uneven",
    "_against",
    "_blaming",
    "FACTS",
    "ABOUT",
    "Lent",
    "sheaf",
]

# Past participles as variables: they say that something happened, not what the variable holds.
PARTICIPLES = ["told", "said", "asked", "taken", "kept", "held", "seen", "heard", "lent"]

# Options that have other names today, by the method that had them (`storage/old_settings.py` still reads them).
OPTIONS = [
    "past",
    "target",
    "tail",
    "small",
    "rounds",
    "ulps",
    "spill",
    "memory",
    "threads",
    "between",
    "within",
    "change",
    "length",
]

GUIDES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
WITH_RECORDED_LABELS = {"default.md", "replication.md"}  # their tables have the labels of results recorded earlier
# These words name nothing in the guides any more.
GUIDE_WORDS = r"\b(Examiner|Sheaf|sheaf|Keeper|Seating|Witness|Roster|call_roll|evened|lab sheet|--alike|by=.evened)\b"

# `part/of/path` of a file, and the names that it may use.
ALLOWED = {
    "analysis/uncertainty.py": {"uneven", "evened", "heard"},  # local to one function
    "analysis/verdicts.py": {"seen"},
    "kernels/": {"kept", "seen"},  # entries that a sweep over an array kept or saw
    "methods/coast/": {"kept", "held", "taken", "seen"},
    "audit/artifacts.py": {"said"},  # a claim has said it, the recording shows whether it holds
    "reports/report_data.py": {"seen"},  # a field of the report's file
    "stats/bootstrap.py": {"seen", "kept"},
    "simulation/datasets/catalogue.py": {"kept"},
    "simulation/datasets/layouts.py": {"Layout"},  # of a folder on disk: which files a dataset comes in
    "paper/": {"kept", "seen"},
    "paper/run_results.py": {"FACTS"},
    "analysis/rewards.py": {"said"},
}


def allowed(path):
    return {name for part, names in ALLOWED.items() if part in path for name in names}


def sources():
    for folder in ("src/fedcoast", "paper"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def names_made_in(tree):
    """Everything that the code itself names: definitions, parameters, variables, attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield getattr(node, "id", getattr(node, "attr", "")), node.lineno


def test_no_name_in_the_code_is_a_riddle():
    banned = {*NAMES, *PARTICIPLES}
    found = [
        f"{path}:{line} {name}"
        for path, tree in sources()
        for name, line in names_made_in(tree)
        if name.lstrip("_") in banned | {one.lstrip("_") for one in banned} and name.lstrip("_") not in allowed(path)
    ]
    assert found == []


def test_modules_have_the_words_of_the_field_too():
    stems = {path.stem for folder in ("src/fedcoast", "paper", "tests") for path in (ROOT / folder).rglob("*.py")}
    riddles = {"links", "papers", "sheaf", "witness", "roll", "crew", "ground", "gate", "canvas", "seal", "survey",
               "account", "wording", "meaning", "claims_of", "agreement_of", "keeper", "hands", "seating"}  # fmt: skip
    assert not stems & riddles


def test_no_file_name_stands_twice_for_different_things():
    """The rooms may share a name where it means the same: `health` is computed in one room and shown in another."""
    same_meaning = {"__init__", "__main__", "health", "utility", "shapley", "cgsv", "fed_pca", "config", "coast"}
    stems = [path.stem for path in (ROOT / "src/fedcoast").rglob("*.py")]
    assert {stem for stem in stems if stems.count(stem) > 1} <= same_meaning


@pytest.mark.parametrize("old", OPTIONS)
def test_no_method_has_an_option_under_its_old_name(old):
    assert not [name for name, method in METHODS.items() if method.config and old in method.config.options()]


def options_of(group, *words):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from options_of(command, *words, name)
        else:
            for parameter in command.params:
                yield from ((" ".join((*words, name)), option) for option in getattr(parameter, "opts", ()))


def test_no_flag_has_its_old_name():
    gone = {"--past", "--target", "--tail", "--small", "--ulps", "--spill", "--threads", "--alike", "--evened"}
    assert [flag for flag in options_of(typer.main.get_command(app)) if flag[1] in gone] == []


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)
def test_no_guide_uses_a_word_that_nothing_has_any_more(guide):
    if guide.name in WITH_RECORDED_LABELS:
        pytest.skip("its labels are those of recorded results")
    assert re.findall(GUIDE_WORDS, guide.read_text(encoding="utf-8")) == []
