"""Datasets of the lab: the user's own copies, read without trusting them; fetched, listed and checked by name."""

from fedcoast.simulation.datasets.catalogue import NAMES, Available, available, load
from fedcoast.simulation.datasets.dataset import Dataset
from fedcoast.simulation.datasets.download import fetch
from fedcoast.simulation.datasets.inspection import Checked, check
from fedcoast.simulation.datasets.root import root_folder

__all__ = ["NAMES", "Available", "Checked", "Dataset", "available", "check", "fetch", "load", "root_folder"]
