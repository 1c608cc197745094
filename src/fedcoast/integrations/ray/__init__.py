"""Out over machines: work that many machines of a Ray cluster share, with the answer of one. Ray is loaded on use."""

from fedcoast.integrations.ray.assessing import assess_on_ray
from fedcoast.integrations.ray.connecting import LOCAL, LostWork, connect

__all__ = ["LOCAL", "LostWork", "assess_on_ray", "connect"]
