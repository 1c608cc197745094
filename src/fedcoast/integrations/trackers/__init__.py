"""Trackers: assessors that also log what they find to the tools people already look at (docs/trackers.md).

    from fedcoast.integrations.trackers import TensorBoard
    strategy = Observed(FedAvg(), TensorBoard(CoAst(), "logs/today"))

Each needs its library, and only when it is made: `pip install 'fedcoast[tensorboard]'`, `[mlflow]` or `[wandb]`.
"""

from fedcoast.integrations.trackers.mlflow import MLflow
from fedcoast.integrations.trackers.tensorboard import TensorBoard
from fedcoast.integrations.trackers.tracker import Tracker
from fedcoast.integrations.trackers.wandb import WandB

__all__ = ["MLflow", "TensorBoard", "Tracker", "WandB"]
