"""Whether everything a report shows follows from a recording: it is made again, and compared whole.

What its author chose or wrote is taken from its signature (the title, the date, the versions, the budget and the rule
for shares). All the rest, every number, name, word and point of a figure, must come out the same.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from inspect import signature as signature_of
from itertools import takewhile
from pathlib import Path
from typing import Any

from fedcoast.analysis.health import health_of
from fedcoast.audit.recompute import ROUNDING
from fedcoast.errors import BadFile, FedcoastError
from fedcoast.methods import METHODS
from fedcoast.methods.base import Assessor
from fedcoast.methods.coast.coast import CoAst
from fedcoast.methods.remaking import NEEDS_DATA, remade
from fedcoast.reports.assess_rounds import assess_rounds, build_report
from fedcoast.reports.forms import to_json
from fedcoast.reports.page import page
from fedcoast.reports.report_data import ReportData, installed_version
from fedcoast.reports.signature import BLOCK, read_signature
from fedcoast.rounds.round import Round
from fedcoast.storage.replay import replay
from fedcoast.storage.run_folder import ground_truth, read_about

_NUMBER = re.compile(r"(-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)")
_TAG = re.compile(r"(<[^>]*>)")
_MADE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2} UTC")
_VERSION = re.compile(r"[0-9A-Za-z.+_-]{1,60}")
_MISSING_EXTRA = re.compile(r"this needs \w+, which is not installed; run: pip install 'fedcoast\[\w+\]'")
_COSTS = ("seconds", "peak_bytes")  # of the machine, and no page shows them
_LONGEST = 60  # characters of a difference that are shown


def check_report(folder: Path, text: str, last_round: int | None) -> list[str]:
    """The differences between a report and one made again from the rounds up to its last."""
    try:
        signature, assessment, _ = read_signature(text)
        again = make_again(folder, signature, assessment, last_round)
        remade_text = to_json(again) if text.lstrip().startswith("{") else page(again)
        found = list(compare_reports(text, remade_text))
    except FedcoastError as error:
        return [f"cannot be checked: {error}"]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        return [
            f"does not say how it was made ({error!r}), so what it shows cannot be compared: an earlier fedcoast wrote"
            f" it, or it was altered. Make it again with: fedcoast report {folder} -o NEW_FILE"
        ]
    theirs, ours = signature["versions"]["fedcoast"], installed_version("fedcoast")
    if found and theirs != ours:
        found.append(f"was made by fedcoast {theirs}; this is {ours}, whose words may differ; check it with that one")
    return found


def compare_reports(text: str, again: str) -> Iterator[str]:
    """The differences between a report in HTML or JSON and one that was made again."""
    if text.lstrip().startswith("{"):
        yield from _differing_json("", _without_costs(json.loads(text)), _without_costs(json.loads(again)))
    else:
        yield from _differing_pages(_unsigned(text), _unsigned(again))


def make_again(
    folder: Path, signature: Mapping[str, Any], assessment: Mapping[str, Any], last_round: int | None
) -> ReportData:
    """Make a report from the recording, with the choices stated in a signature."""
    made, options, parts = signature["made"], signature["options"], signature["parts"]
    versions, others = signature["versions"], signature["methods"]
    if not _MADE.fullmatch(made) or not all(_VERSION.fullmatch(version) for version in versions.values()):
        raise BadFile("its date or versions are not as fedcoast writes them")
    chosen = signature_of(build_report).parameters.keys() - {"assessment", "truth", "details"}
    if versions.keys() != {"fedcoast", "numpy", "python"} or options.keys() != chosen:
        raise BadFile("its versions or options are not those that fedcoast writes")
    about = read_about(folder)
    unavailable = signature["unavailable"]
    rivals = {name: _named(name, method, settings) for name, (method, settings) in others.items()}
    failed = [name for name in unavailable if _must_fail_again(name, unavailable)]
    rivals |= {name: METHODS[name].make() for name in failed}
    data = assess_rounds(
        _until(folder, last_round),
        _assessor(assessment, "layers" in parts),
        rivals,
        {name: reason for name, reason in unavailable.items() if name not in rivals},
        title=signature["title"],
        truth=ground_truth(about) if "truth" in parts else None,
        facts=about if "facts" in parts else {},
        **options,
    )
    health = health_of(folder, data.health.shares)
    if "health" not in parts and not health.warning():  # a warning must not be left out
        health = replace(health, shares={})
    flags = data.flags if "flags" in parts else None
    return replace(data, health=health, flags=flags, made=made, versions=versions, head=signature["head"])


def _assessor(assessment: Mapping[str, Any], layers: bool) -> Assessor:
    assessor = remade(assessment["method"], assessment["settings"])
    return CoAst(assessor.config, track_layers=True) if layers and isinstance(assessor, CoAst) else assessor


def _named(name: str, method: str, settings: Mapping[str, Any]) -> Assessor:
    if name != method:
        raise BadFile(f"it calls the method {method!r} {name!r}, and names are words that nothing can confirm")
    return remade(method, settings)


def _must_fail_again(name: str, unavailable: Mapping[str, str]) -> bool:
    """Whether a method that gave no answer has to fail again, since its reason is in the author's words."""
    if name not in METHODS:
        raise BadFile(f"it gives a reason for {name!r}, which is no method of this fedcoast")
    reason = unavailable[name]
    if {"utility", "gradient"} & set(METHODS[name].needs):
        if reason != NEEDS_DATA and not _MISSING_EXTRA.fullmatch(reason):
            raise BadFile(f"it gives a reason why {name} has no answer that fedcoast does not write: {reason!r}")
        return False
    return not _MISSING_EXTRA.fullmatch(reason)


def _until(folder: Path, last_round: int | None) -> Iterator[Round]:
    return takewhile(lambda view: last_round is not None and view.number <= last_round, replay(folder))


def _unsigned(text: str) -> str:
    """A page without its signature, which is checked by itself."""
    return BLOCK.sub("", text)


def _differing_pages(reported: str, again: str) -> Iterator[str]:
    """Pages are compared piece by piece, tags and scripts too: what a browser runs can change what it shows."""
    ours, theirs = (_TAG.split(text) for text in _where_they_part(again, reported))
    for old, new in zip(theirs, ours, strict=False):
        if not _same_text(old, new):
            was, now = _around(old, new)
            yield f"shows {was!r}; {now!r} follows from the recording"
    if len(ours) != len(theirs):
        yield f"has {len(theirs):,} parts; {len(ours):,} follow from the recording"


def _where_they_part(one: str, other: str) -> tuple[str, str]:
    """Two texts without their common first and last lines."""
    ones, others = one.splitlines(keepends=True), other.splitlines(keepends=True)
    shorter = min(len(ones), len(others))
    begin = next((n for n in range(shorter) if ones[n] != others[n]), shorter)
    end = next((n for n in range(shorter - begin) if ones[-1 - n] != others[-1 - n]), shorter - begin)
    return "".join(ones[begin : len(ones) - end]), "".join(others[begin : len(others) - end])


def _same_text(old: str, new: str) -> bool:
    """Whether two texts are the same except for the last digits of fractions."""
    if old == new:
        return True
    olds, news = _NUMBER.split(old), _NUMBER.split(new)
    return len(olds) == len(news) and all(
        one == two or (place % 2 == 1 and "." in one and math.isclose(float(one), float(two), rel_tol=ROUNDING))
        for place, (one, two) in enumerate(zip(olds, news, strict=True))
    )


def _around(old: str, new: str) -> tuple[str, str]:
    """Two texts from shortly before their first difference."""
    first = next((place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    begin = max(0, first - 20)
    return old[begin : begin + _LONGEST].strip(), new[begin : begin + _LONGEST].strip()


def _without_costs(report: Any) -> Any:
    report.pop("seal", None)
    for method in ((report.get("comparison") or {}).get("methods") or {}).values():
        for cost in _COSTS:
            method.pop(cost, None)
    return report


def _differing_json(where: str, reported: Any, again: Any) -> Iterator[str]:
    if isinstance(reported, dict) and isinstance(again, dict):
        if list(reported) != list(again):
            yield f"lists {list(reported)} at {where or 'its top'}; {list(again)} follows from the recording"
        for key in (key for key in again if key in reported):
            yield from _differing_json(f"{where}{'.' if where else ''}{key}", reported[key], again[key])
    elif isinstance(reported, list) and isinstance(again, list) and len(reported) == len(again):
        for place, (old, new) in enumerate(zip(reported, again, strict=True)):
            yield from _differing_json(f"{where}[{place}]", old, new)
    elif not _same_value(reported, again):
        yield f"has {where} {reported!r}; {again!r} follows from the recording"


def _same_value(old: Any, new: Any) -> bool:
    if isinstance(old, float) and isinstance(new, float):
        return math.isclose(old, new, rel_tol=ROUNDING, abs_tol=ROUNDING)
    return type(old) is type(new) and bool(old == new)
