"""Trackers: assessors that also log what they find to the tools people already look at (docs/trackers.md).

    from fedcoast.trackers import TensorBoard
    strategy = Observed(FedAvg(), TensorBoard(CoAst(), "logs/today"))

Each needs its library, and only when it is made: `pip install 'fedcoast[tensorboard]'`, `[mlflow]` or `[wandb]`.
"""

from fedcoast.trackers.mlflow import MLflow
from fedcoast.trackers.tensorboard import TensorBoard
from fedcoast.trackers.tracker import Tracker
from fedcoast.trackers.wandb import WandB

__all__ = ["MLflow", "TensorBoard", "Tracker", "WandB"]
