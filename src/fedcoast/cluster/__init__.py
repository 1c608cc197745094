"""Out over machines: work that many machines of a Ray cluster share, with the answer of one. Ray is loaded on use."""

from fedcoast.cluster.assessing import assess_on_ray
from fedcoast.cluster.connecting import LOCAL, LostWork, connect

__all__ = ["LOCAL", "LostWork", "assess_on_ray", "connect"]
