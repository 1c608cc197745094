"""NVIDIA FLARE: one component on the server assesses the sites.

    recipe = FedAvgRecipe(…)
    add_observer(recipe, ContributionObserver(record_to="/runs/today"))

docs/nvflare.md has the details.
"""
# ruff: noqa: E402

from fedcoast.errors import require

require("nvflare", extra="nvflare")

from fedcoast.integrations.nvflare.component import ContributionObserver
from fedcoast.integrations.nvflare.jobs import add_observer

__all__ = ["ContributionObserver", "add_observer"]
