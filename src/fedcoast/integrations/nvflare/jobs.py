"""Attaches the observer to a job or a recipe."""

from typing import Any

from nvflare.job_config.api import FedJob

from fedcoast.errors import BadSetting
from fedcoast.integrations.nvflare.component import ContributionObserver

COMPONENT_ID = "fedcoast"


def add_observer(job: Any, observer: ContributionObserver | None = None) -> ContributionObserver:
    """Add the observer to the server of a `FedJob` or of a recipe such as `FedAvgRecipe`; returns the observer.

    FLARE ships the source of unknown components with the job. fedcoast is installed on the server instead, so that
    it is named as a package that needs no copy.
    """
    fed_job = job if isinstance(job, FedJob) else getattr(job, "_job", None)  # recipes have no public way to their job
    if not isinstance(fed_job, FedJob):
        raise BadSetting(f"a FedJob or a recipe is wanted, such as FedAvgRecipe(…); got {job!r}")
    observer = ContributionObserver() if observer is None else observer
    if not isinstance(observer, ContributionObserver):
        raise BadSetting(f"observer must be a ContributionObserver; got {observer!r}")
    fed_job.to_server(observer, id=COMPONENT_ID)
    packages = fed_job.job.app_packages
    fed_job.job.set_app_packages([*packages, *({"fedcoast"} - {*packages})])
    return observer
