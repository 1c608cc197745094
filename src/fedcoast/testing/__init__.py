"""For authors of methods: the contract that every assessor keeps, and a small federation to try it on."""

from fedcoast.testing.contract import CHECKS, check_assessor
from fedcoast.testing.demands import BrokenContract
from fedcoast.testing.toy import Quadratic, toy_rounds, toy_utility

__all__ = ["CHECKS", "BrokenContract", "Quadratic", "check_assessor", "toy_rounds", "toy_utility"]
