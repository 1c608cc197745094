"""A table as JSON: the method specs, every run with its scores, every cell with its values, and their provenance.

A record is enough to fill the cells again on a machine that has neither the runs nor their results. Its keys are those
of the first release of the format: "slots" are cells, "questions" method specs, "answers" results, "made" provenance.
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
from paper.run_results import RUN_KEY, Facts, Known, RunResult, RunResults

FORMAT = "fedcoast-table"
VERSION = 2


def write_record(
    file: Path, table: Table, cell_results: list[CellResult], run_results: RunResults, command: str
) -> None:
    specs: dict[str, dict[str, Any]] = {}
    runs: dict[str, dict[str, Any]] = {}
    provenances: list[dict[str, Any]] = []
    for cell in table.cells:
        for run in table.runs(cell):
            _add_run(cell, run, run_results, specs, runs, provenances)
    cells = [_cell(cell_result) for cell_result in cell_results]
    head = {"format": FORMAT, "version": VERSION, "table": table.name, "title": table.title, "command": command}
    body = {"seeds": table.seeds, "slots": cells, "questions": specs, "runs": runs, "made": provenances}
    write_json(file, {**head, **body})


def loses(file: Path, cell_results: Sequence[CellResult]) -> bool:
    """Whether the record in the file has a seed's number in a cell where these results have none.

    Numbers of a cell that asks something else today, because a default has changed, are not lost but out of date.
    """
    if not file.exists():
        return False
    new = {_place(one): {str(seed) for seed in one.values} for one in cell_results}
    try:
        old = {
            (s["section"], s["row"], s["column"], s["run"], s["question"]): s["values"].keys()
            for s in read_json(file)["slots"]
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise _bad_record(file, error) from error
    return any(old[place] - new[place] for place in old.keys() & new.keys())


def _place(result: CellResult) -> tuple[str, str, str, str, str | None]:
    cell = result.cell
    question = None if cell.spec is None else cell.spec.key(cell.experiment)
    return cell.section, cell.row, cell.column, cell.experiment.name.rpartition("-seed")[0], question


def _add_run(
    cell: Cell,
    run: Experiment,
    run_results: RunResults,
    specs: dict[str, dict[str, Any]],
    runs: dict[str, dict[str, Any]],
    provenances: list[dict[str, Any]],
) -> None:
    facts = run_results.facts(run)
    if facts is None:
        return
    entry = runs.setdefault(
        run.name,
        {
            "experiment": run.to_json(),
            "seed": run.seed,
            "dataset": facts.dataset,
            "planted": facts.ground_truth,
            "test accuracy": facts.accuracy,
            **({} if facts.unmoved is None else {"unmoved": columns(facts.unmoved)}),
            "answers": {},
        },
    )
    for spec in cell.specs:
        key, run_result = spec.key(run), run_results.get(run, spec)
        if run_result is None or key in entry["answers"]:
            continue
        specs[key] = {"method": spec.method, "settings": run_result.settings, "sparse": spec.sparse}
        if run_result.provenance not in provenances:
            provenances.append(run_result.provenance)
        entry["answers"][key] = {
            "scores": run_result.scores,
            "seen": run_result.rounds_scored,
            "seconds": run_result.seconds,
            "evaluations": run_result.evaluations,
            "made": provenances.index(run_result.provenance),
        }
        if _counts_rounds(run):
            entry["answers"][key]["credits"] = run_result.by_round


def results_in_records(folder: Path) -> Known:
    """The facts and results in the tables of a folder."""
    known: dict[str, dict[str, dict[str, Any]]] = {}
    for file in sorted(folder.glob("*.json")):
        data = read_json(file)
        if not isinstance(data, dict) or (data.get("format"), data.get("version")) != (FORMAT, VERSION):
            continue
        try:
            for name, entry in data["runs"].items():
                run = Experiment.from_json(entry["experiment"])
                if run.name != name:
                    raise BadFile(
                        f"{file} lists another experiment under {name} than that name means; it has been altered"
                    )
                here, new = known.setdefault(name, {}), _results_of_entry(run, entry, data)
                new[RUN_KEY] = _with_health(new[RUN_KEY], here.get(RUN_KEY))
                here.update(new)
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise _bad_record(file, error) from error
    return known


def _results_of_entry(run: Experiment, entry: dict[str, Any], data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    facts = Facts(
        dataset=entry["dataset"],
        accuracy=entry["test accuracy"],
        ground_truth=entry["planted"],
        unmoved=rows(entry["unmoved"], len(entry["test accuracy"])) if "unmoved" in entry else None,
    )
    results = {RUN_KEY: facts.to_json()}
    for key, recorded in entry["answers"].items():
        if _counts_rounds(run) and "credits" not in recorded:
            continue  # a record from before credits were included
        run_result = RunResult(
            settings=data["questions"][key]["settings"],
            scores=recorded["scores"],
            rounds_scored=recorded["seen"],
            credits=recorded.get("credits"),
            seconds=recorded["seconds"],
            evaluations=recorded["evaluations"],
            provenance=data["made"][recorded["made"]],
        )
        results[key] = run_result.to_json()
    return results


def _with_health(facts: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any]:
    """Add the health that another table has of the same training, where this record has none."""
    if facts["unmoved"] is not None or before is None or before["accuracy"] != facts["accuracy"]:
        return facts
    return {**facts, "unmoved": before["unmoved"]}


def _counts_rounds(run: Experiment) -> bool:
    """Whether cells of the run need credits by round: scores do not compare where clients miss rounds."""
    return run.participation < 1


def _bad_record(file: Path, error: Exception) -> BadFile:
    return BadFile(f"{file} is not a valid table record ({error!r}); delete it to make it again")


def _cell(cell_result: CellResult) -> dict[str, Any]:
    cell = cell_result.cell
    return {
        "section": cell.section,
        "row": cell.row,
        "column": cell.column,
        "run": cell.experiment.name.rpartition("-seed")[0],
        "question": None if cell.spec is None else cell.spec.key(cell.experiment),
        "reference": None if cell.reference is None else cell.reference.key(cell.experiment),
        "at round": cell.at,
        "published": cell.published,
        "values": {str(seed): None if math.isnan(value) else value for seed, value in cell_result.values.items()},
        "mean": cell_result.mean,
        "standard deviation": cell_result.spread,
    }
