"""Out over machines: work that many machines of a Ray cluster share, with the answer of one. Ray is loaded on use."""

from fedcoast.cluster.connecting import LOCAL, LostWork, connect

__all__ = ["LOCAL", "LostWork", "connect"]
