"""Assess a recorded run on a Ray cluster, with the result of a single machine. Ray is imported on use."""

from fedcoast.integrations.ray.assess import assess_on_ray
from fedcoast.integrations.ray.connection import LOCAL, ClusterError, connect

__all__ = ["LOCAL", "ClusterError", "assess_on_ray", "connect"]
