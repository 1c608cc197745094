"""Breast cancer survival in six regions: TCGA-BRCA, the clinical table that FLamby prepared.

Two files in the folder `tcga-brca` below `$FEDCOAST_DATA`, both from FLamby's repository (Ogier du Terrail et al.,
NeurIPS 2022): `brca.csv` (39 features, E: whether the patient died, T: days) and `train_test_split.csv`, whose column
`fold2` ends in the number of the region. The data are TCGA's, under the terms of the GDC; fedcoast does not bring them.
Canada is the rare site: 51 of 1,088 patients.
"""

import csv
import io
import os

import numpy as np

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets.checksums import holds
from fedcoast.simulation.datasets.published import Published
from fedcoast.simulation.datasets.root import VARIABLE, root_folder
from fedcoast.simulation.datasets.site_table import SiteTable
from fedcoast.simulation.datasets.source_files import read_folder

TITLE = "Breast cancer survival, six regions (TCGA-BRCA)"
FOLDER = "tcga-brca"
SITES = ("northeast", "south", "west", "midwest", "europe", "canada")
FILES = (
    Published("brca.csv", 113_184, "07cb53423f7d579d33cfdbf2cba57b2aee75318b85866c68ce39a75b1f1ba020"),
    Published("train_test_split.csv", 28_946, "1249c6543a4060ff0fdaf8510fc37017755836db6c9fc5e6af96057c36510990"),
)
# FLamby's newest commit of 18 November 2026.
SOURCE = "https://github.com/owkin/FLamby/tree/edacf54d5211520583b0133d55ac39b6fda8324b/flamby/datasets/fed_tcga_brca"


def load_brca(root: str | os.PathLike[str] | None = None) -> SiteTable:
    """The table of 1,088 patients, from the user's own copy."""
    folder = root_folder(root) / FOLDER
    if not folder.is_dir():
        raise BadFile(
            f"{folder}: wanted {' and '.join(file.name for file in FILES)}, got no such folder; copy them there from"
            f" FLamby ({SOURCE}, the second one from its folder dataset_creation_scripts), or name another place in"
            f" {VARIABLE}"
        )
    files = read_folder(folder, [file.name for file in FILES])
    if not holds(files, FILES):
        raise BadFile(f"{folder}: the files are not as published; copy them again from FLamby ({SOURCE})")
    folds = csv.DictReader(io.StringIO(files["train_test_split.csv"].data.decode("utf-8")))
    region = {row["pid"]: int(row["fold2"].rpartition("_")[2]) for row in folds}
    table = csv.DictReader(io.StringIO(files["brca.csv"].data.decode("utf-8")))
    patients = [row for row in table if row["pid"] in region]  # some belong to no region
    columns = tuple(name for name in patients[0] if name not in ("pid", "E", "T"))
    return SiteTable(
        name="brca",
        title=TITLE,
        task="survival",
        columns=columns,
        sites=SITES,
        features=np.array([[float(row[name]) for name in columns] for row in patients]),
        outcome=np.array([int(float(row["E"])) for row in patients]),
        time=np.array([float(row["T"]) for row in patients]),
        site=np.array([region[row["pid"]] for row in patients]),
    )
