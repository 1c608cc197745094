"""Heart disease in four hospitals (UCI, CC BY 4.0): Cleveland, Budapest, Switzerland, Long Beach.

The published files come with the package (`heart_disease/README.md` has the attribution). Cleaned as FLamby does
(Ogier du Terrail et al., NeurIPS 2022): three columns that most hospitals left empty are dropped, then rows with
anything missing; 303, 261, 46 and 130 patients are left. The kind of chest pain and the resting ECG become 0/1 columns.
Switzerland is the rare site: nearly all its patients are ill, and its cholesterol was never measured (it is 0).
"""

import hashlib
from importlib.resources import files

import numpy as np

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets.published import Published
from fedcoast.simulation.datasets.site_table import SiteTable

TITLE = "Heart disease, four hospitals (UCI)"
SITES = ("cleveland", "hungarian", "switzerland", "va")
FILES = (
    Published("processed.cleveland.data", 18_461, "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8"),
    Published("processed.hungarian.data", 10_263, "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796"),
    Published("processed.switzerland.data", 4_109, "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314"),
    Published("processed.va.data", 6_737, "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f"),
)
COLUMNS = (
    "age",
    "sex",
    "cp",
    "trestbps",
    "chol",
    "fbs",
    "restecg",
    "thalach",
    "exang",
    "oldpeak",
    "slope",
    "ca",
    "thal",
)
MOSTLY_EMPTY = ("slope", "ca", "thal")
CATEGORIES = {"cp": (2, 3, 4), "restecg": (1, 2)}  # the first of each is the one that all columns leave at 0


def load_heart() -> SiteTable:
    """The table of 740 patients."""
    rows, site = [], []
    for number, published in enumerate(FILES):
        own = _rows(published)
        rows += own
        site += [number] * len(own)
    values = np.array(rows)
    names, columns = [], []
    for position, name in enumerate([name for name in COLUMNS if name not in MOSTLY_EMPTY]):
        column = values[:, position]
        if name in CATEGORIES:
            names += [f"{name}={kind}" for kind in CATEGORIES[name]]
            columns += [(column == kind).astype(np.float64) for kind in CATEGORIES[name]]
        else:
            names.append(name)
            columns.append(column)
    return SiteTable(
        name="heart",
        title=TITLE,
        task="classification",
        columns=tuple(names),
        sites=SITES,
        features=np.column_stack(columns),
        outcome=(values[:, -1] > 0).astype(np.int64),
        site=np.array(site),
    )


def _rows(published: Published) -> list[list[float]]:
    """The patients of one hospital of whom everything is known: the kept columns, then the diagnosis."""
    data = (files("fedcoast.simulation.datasets") / "heart_disease" / published.name).read_bytes()
    if hashlib.sha256(data).hexdigest() != published.digest:
        raise BadFile(f"{published.name} is not as published; reinstall fedcoast, which brings it")
    columns = [position for position, name in enumerate((*COLUMNS, "diagnosis")) if name not in MOSTLY_EMPTY]
    rows = []
    for line in data.decode("ascii").split():
        cells = line.split(",")
        own = [cells[position] for position in columns]
        if "?" not in own:
            rows.append([float(cell) for cell in own])
    return rows
