"""The scores of a job as one JSON file, replaced after each round."""

import json
from collections.abc import Mapping
from pathlib import Path

from fedcoast.methods.assessment import Assessment
from fedcoast.storage.files import write_json


def write_results(path: Path, answer: Assessment, unobserved: Mapping[int, Mapping[str, str]]) -> None:
    """`assessment` is as `Assessment.from_json` reads it; `unobserved` has the rounds that were missed, and why."""
    unobserved_rounds = {str(number): dict(reasons) for number, reasons in unobserved.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"assessment": json.loads(answer.to_json()), "unobserved": unobserved_rounds})
