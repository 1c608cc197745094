"""A table in JSON: the questions, every run with its scores, every slot with its values, and where each was made.

What it tells is enough to fill its slots again, on a machine that has neither the runs nor their answers.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fedcoast.errors import BadFile
from fedcoast.simulation.experiment import Experiment
from fedcoast.storage.files import read_json, write_json
from paper.cell_results import CellResult
from paper.cells import Cell, Table
from paper.health import columns, rows
from paper.run_results import FACTS, Facts, Known, RunResult, RunResults

FORMAT = "fedcoast-table"
VERSION = 2


def write_record(file: Path, table: Table, findings: list[CellResult], answers: RunResults, command: str) -> None:
    questions: dict[str, dict[str, Any]] = {}
    runs: dict[str, dict[str, Any]] = {}
    made: list[dict[str, Any]] = []
    for slot in table.slots:
        for run in table.runs(slot):
            _enter(slot, run, answers, questions, runs, made)
    slots = [_slot(finding) for finding in findings]
    head = {"format": FORMAT, "version": VERSION, "table": table.name, "title": table.title, "command": command}
    body = {"seeds": table.seeds, "slots": slots, "questions": questions, "runs": runs, "made": made}
    write_json(file, {**head, **body})


def loses(file: Path, findings: Sequence[CellResult]) -> bool:
    """Whether the record in the file has a seed's number in a place where these findings have none."""
    if not file.exists():
        return False
    found = {(f.slot.section, f.slot.row, f.slot.column): {str(seed) for seed in f.values} for f in findings}
    try:
        kept = {(s["section"], s["row"], s["column"]): s["values"].keys() for s in read_json(file)["slots"]}
    except (KeyError, TypeError, AttributeError) as error:
        raise _torn(file, error) from error
    return any(kept[place] - found[place] for place in kept.keys() & found.keys())


def _enter(
    slot: Cell,
    run: Experiment,
    answers: RunResults,
    questions: dict[str, dict[str, Any]],
    runs: dict[str, dict[str, Any]],
    made: list[dict[str, Any]],
) -> None:
    facts = answers.facts(run)
    if facts is None:
        return
    entry = runs.setdefault(
        run.name,
        {
            "experiment": run.to_json(),
            "seed": run.seed,
            "dataset": facts.dataset,
            "planted": facts.planted,
            "test accuracy": facts.accuracy,
            **({} if facts.unmoved is None else {"unmoved": columns(facts.unmoved)}),
            "answers": {},
        },
    )
    for question in slot.questions:
        key, answer = question.key(run), answers.answer(run, question)
        if answer is None or key in entry["answers"]:
            continue
        questions[key] = {"method": question.method, "settings": answer.settings, "sparse": question.sparse}
        if answer.made not in made:
            made.append(answer.made)
        entry["answers"][key] = {
            "scores": answer.scores,
            "seen": answer.seen,
            "seconds": answer.seconds,
            "evaluations": answer.evaluations,
            "made": made.index(answer.made),
        }
        if _counts_rounds(run):
            entry["answers"][key]["credits"] = answer.by_round


def told(folder: Path) -> Known:
    """The facts and answers in the tables of a folder."""
    known: dict[str, dict[str, dict[str, Any]]] = {}
    for file in sorted(folder.glob("*.json")):
        data = read_json(file)
        if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
            continue
        try:
            for name, entry in data["runs"].items():
                run = Experiment.from_json(entry["experiment"])
                if run.name != name:
                    raise BadFile(f"{file} has another experiment as {name} than that name stands for; it was altered")
                here, new = known.setdefault(name, {}), _told(run, entry, data)
                new[FACTS] = _with_health(new[FACTS], here.get(FACTS))
                here.update(new)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise _torn(file, error) from error
    return known


def _told(run: Experiment, entry: dict[str, Any], data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    facts = Facts(
        dataset=entry["dataset"],
        accuracy=entry["test accuracy"],
        planted=entry["planted"],
        unmoved=rows(entry["unmoved"], len(entry["test accuracy"])) if "unmoved" in entry else None,
    )
    found = {FACTS: vars(facts)}
    for key, kept in entry["answers"].items():
        if _counts_rounds(run) and "credits" not in kept:
            continue  # a table of before credits were kept
        answer = RunResult(
            settings=data["questions"][key]["settings"],
            scores=kept["scores"],
            seen=kept["seen"],
            credits=kept.get("credits"),
            seconds=kept["seconds"],
            evaluations=kept["evaluations"],
            made=data["made"][kept["made"]],
        )
        found[key] = vars(answer)
    return found


def _with_health(facts: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """With the health that another table tells of the same training, where this one is of before it was kept."""
    if facts["unmoved"] is not None or before is None or before["accuracy"] != facts["accuracy"]:
        return facts
    return {**facts, "unmoved": before["unmoved"]}


def _counts_rounds(run: Experiment) -> bool:
    """Whether numbers of the run are made of credits by round: where clients miss some, scores do not compare."""
    return run.participation < 1


def _torn(file: Path, error: Exception) -> BadFile:
    return BadFile(f"{file} is not as a table is kept ({error!r}); delete it to have it made new")


def _slot(finding: CellResult) -> dict[str, Any]:
    slot = finding.slot
    return {
        "section": slot.section,
        "row": slot.row,
        "column": slot.column,
        "run": slot.experiment.name.rpartition("-seed")[0],
        "question": None if slot.question is None else slot.question.key(slot.experiment),
        "reference": None if slot.reference is None else slot.reference.key(slot.experiment),
        "at round": slot.at,
        "published": slot.published,
        "values": {str(seed): None if math.isnan(value) else value for seed, value in finding.values.items()},
        "mean": finding.mean,
        "standard deviation": finding.spread,
    }
