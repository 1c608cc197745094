"""Patients in a table, with the site that holds each: a natural federation, not a split data set."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from fedcoast.errors import BadSetting

Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Task = Literal["classification", "survival"]


@dataclass(frozen=True, eq=False)
class SiteTable:
    """A row for each patient.

    features  numbers, one column each, not yet scaled
    outcome   classification: the class, from 0; survival: 1 if the event was seen, 0 if the patient was lost before
    time      survival: when that was; classification: None
    site      the index of the patient's site in `sites`
    """

    name: str
    title: str
    task: Task
    columns: tuple[str, ...]
    sites: tuple[str, ...]
    features: Numbers
    outcome: Indices
    site: Indices
    time: Numbers | None = None

    def __post_init__(self) -> None:
        rows = len(self.features)
        if self.features.shape != (rows, len(self.columns)) or not np.isfinite(self.features).all():
            raise BadSetting(
                f"features must be finite numbers, {len(self.columns)} columns wide; got {self.features.shape}"
            )
        if (self.time is None) != (self.task == "classification"):
            raise BadSetting("survival needs a time for each patient, and classification has none")
        for part in ("outcome", "site", "time"):
            values = getattr(self, part)
            if values is not None and values.shape != (rows,):
                raise BadSetting(f"{part} must have {rows} entries, one for each row; got {values.shape}")
        if set(np.unique(self.site)) != set(range(len(self.sites))):
            raise BadSetting(f"each of the {len(self.sites)} sites must have patients")
        for part in ("features", "outcome", "site", "time"):
            if (values := getattr(self, part)) is not None:
                object.__setattr__(self, part, _read_only(values))

    def rows_of(self, site: int) -> Indices:
        return np.flatnonzero(self.site == site)


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view
