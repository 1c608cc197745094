"""Names that readers did not understand are gone, and stay gone: from the code, the command line and the guides.

Not every use of such a word is a riddle: files keep the keys that they always had, and old settings are translated.
Each exception says why.
"""

import ast
import re
from pathlib import Path

import pytest
import typer

from fedcoast import METHODS, Assessment, Round
from fedcoast.analysis.uncertainty import Uncertainty
from fedcoast.cli import app
from fedcoast.reports.report_data import ClientSummary
from fedcoast.rounds.schema import LayerSpec

ROOT = Path(__file__).parent.parent

# Names that nothing in the code has any more, by the room that they came from. Underscores at the ends do not count.
NAMES = """
CoAst: Examiner Examination Held Keeper Keeping trace followed _against _worth drift go_on_with
rounds, storage: Sheaf Spill Layout Entry Kept Answering FACTS ABOUT _blaming Lent
kernels, stats: Hands Seating seat seats seated Intake tally tallies evening evenly resting silence voices legs unheard
Assessment: evened strangers uneven
flower: Witness Seen Roll call_roll Roster Tap introduce acting
simulation: Crew Bench _sit_down arrive Ground holdings beliefs planted go_on circumstances sheet shelf Judge
paper: Question Answer Finding Slot Board choice judgement
reports: Account Standing survey conclude certainty gate canvas wording seal Follower
audit: papers Walk
"""

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
GUIDE_WORDS = (
    r"(?<![\w-])(Examiner|Sheaf|sheaf|Keeper|Seating|Witness|Roster|call_roll|evened|lab sheet|--alike|by=.evened"
    r"|`target`|[Tt]he drift)"
)

# Ordinary words that are on the list, where they mean what they say: `part/of/path` of a file, and what it may use.
ALLOWED = {
    "simulation/datasets/layouts.py": {"Layout"},  # of a folder on disk: which files a dataset comes in
    "audit/findings.py": {"Finding"},  # of a check
    "tracker.py": {"trace"},  # the traceback that `__exit__` gets
    "observer_hub.py": {"trace"},
    "recorder.py": {"trace"},
    "reports/plots.py": {"trace"},  # Plotly's word for a line
    "reports/live.py": {"follower"},  # of a run: an instance of RunFollower
    "reports/many_runs.py": {"follower"},
    "reports/terminal.py": {"follower"},
    "cli/reporting.py": {"follower"},
}
# In tests and benchmarks, where a question may be one. Participles are not checked there.
ALLOWED_IN_TESTS = {"answer", "question", "follower", "trace", "seen", "held", "kept", "planted"}

# Phrases that readers had to read twice: from the list of sentences that were rewritten, and their kind.
PHRASES = [
    r"who only follows gets",
    r"compare what is evened",
    r"never met, not even through",
    r"told apart or not yet",
    r"not to be had",
    r"NumPy does their work",
    r"which the state names\b",
    r"it hands through",
    r"Nowhere can the ranking be cut",
    r"head of a thread",
    r"begun anew",
    r"mean nothing to",
    r"\bcarr(?:y|ies) no (?:chain|link)",
    r"goes on from (?:it|another)",
]


def allowed(path):
    return {name for part, names in ALLOWED.items() if part in path for name in names}


def riddles():
    listed = [name for line in NAMES.strip().splitlines() for name in line.partition(":")[2].split()]
    return set(listed)


def sources(*folders):
    for folder in folders:
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


def matches(name, banned):
    """A class in exactly its spelling, other names in any; what began with an underscore was known by that."""
    public = {one for one in banned if not one.startswith("_")}
    bare = name.strip("_")
    return name in banned or bare in public or bare.lower() in {one for one in public if one.islower()}


def test_no_name_in_the_code_is_a_riddle():
    banned = riddles() | set(PARTICIPLES)
    found = [
        f"{path}:{line} {name}"
        for path, tree in sources("src/fedcoast", "paper")
        for name, line in names_made_in(tree)
        if matches(name, banned) and name.strip("_") not in allowed(path)
    ]
    assert found == []


def test_no_name_in_tests_benchmarks_and_examples_is_one_either():
    found = [
        f"{path}:{line} {name}"
        for path, tree in sources("tests", "benchmarks", "examples")
        for name, line in names_made_in(tree)
        if matches(name, riddles()) and name.strip("_") not in ALLOWED_IN_TESTS
    ]
    assert found == []


@pytest.mark.parametrize("path", [*sorted((ROOT / "src/fedcoast").rglob("*.py")), *GUIDES], ids=lambda path: path.name)
def test_no_sentence_is_one_that_readers_had_to_read_twice(path):
    assert re.findall("|".join(PHRASES), " ".join(path.read_text(encoding="utf-8").split())) == []


def test_the_guard_of_guides_finds_words_and_flags():
    for text in ("use --alike", "`fedcoast lab sheet`", "four `target`s", "with the drift", "a Sheaf"):
        assert re.search(GUIDE_WORDS, text), text


def test_the_guard_finds_a_riddle():
    """It would be worth nothing if it looked past definitions, parameters, attributes or loops."""
    for code in ("class Sheaf: ...", "def f(witness): ...", "self.tallies = 1", "for drift in (): ...", "told = 1"):
        banned = riddles() | set(PARTICIPLES) | {"witness"}
        assert any(matches(name, banned) for name, _ in names_made_in(ast.parse(code))), code


@pytest.mark.parametrize(
    ("kind", "old"),
    [
        (Round, {"pruned"}),
        (LayerSpec, {"kind", "votes"}),
        (Assessment, {"evened", "strangers", "uneven", "missed", "seen", "dropped"}),
        (ClientSummary, {"seen", "planted"}),
        (Uncertainty, {"above"}),
    ],
)
def test_fields_have_their_new_names(kind, old):
    assert not old & {*dir(kind), *kind.__dataclass_fields__}


def test_modules_have_the_words_of_the_field_too():
    stems = {path.stem for folder in ("src/fedcoast", "paper", "tests") for path in (ROOT / folder).rglob("*.py")}
    gone = [
        "links",
        "papers",
        "sheaf",
        "witness",
        "roll",
        "crew",
        "ground",
        "gate",
        "canvas",
        "seal",
        "survey",
        "account",
        "wording",
        "meaning",
        "claims_of",
        "agreement_of",
        "keeper",
        "hands",
        "seating",
        "held",
        "tap",
        "intake",
        "tallies",
        "drift",
        "certainty",
        "trace",
        "bench",
        "sheet",
        "choice",
    ]
    gone = {*gone, *(f"test_{word}" for word in gone)}
    assert not stems & gone, stems & gone


def test_no_file_name_stands_twice_for_different_things():
    """The rooms may share a name where it means the same: `health` is computed in one room and shown in another."""
    same_meaning = {"__init__", "__main__", "health", "utility", "shapley", "cgsv", "fed_pca", "config", "coast"}
    stems = [path.stem for path in (ROOT / "src/fedcoast").rglob("*.py")]
    assert {stem for stem in stems if stems.count(stem) > 1} <= same_meaning


def test_no_two_classes_have_the_same_name():
    classes = [
        node.name for _, tree in sources("src/fedcoast") for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    ]
    twice = {name for name in classes if classes.count(name) > 1}
    assert twice == set()


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
