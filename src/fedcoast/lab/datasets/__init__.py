"""Datasets of the lab: the user's own copies, read without trusting them; fetched, listed and checked by name."""

from fedcoast.lab.datasets.catalogue import NAMES, Available, available, load
from fedcoast.lab.datasets.dataset import Dataset
from fedcoast.lab.datasets.download import fetch
from fedcoast.lab.datasets.inspection import Checked, check
from fedcoast.lab.datasets.root import root_folder

__all__ = ["NAMES", "Available", "Checked", "Dataset", "available", "check", "fetch", "load", "root_folder"]
