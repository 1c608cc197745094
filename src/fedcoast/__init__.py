"""fedcoast: who contributed what in federated learning, without validation data.

>>> import numpy as np
>>> assessor = CoAst(keep=0.5)
>>> model = {"w": np.zeros(4)}
>>> for number in range(3):
...     local = {"helps": {"w": model["w"] + [4, 3, 2, 1]}, "helps too": {"w": model["w"] + [5, 4, 1, 1]}}
...     local |= {"idles": model, "hurts": {"w": model["w"] - [1, 0, 0, 1]}}
...     after = {"w": sum(m["w"] for m in local.values()) / 4}
...     assessor.observe(Round(number, start=model, local=local, end=after))
...     model = after
>>> {client: round(score, 3) for client, score in assessor.assessment().scores.items()}
{'helps': 0.044, 'helps too': 0.044, 'hurts': -0.088, 'idles': 0.0}
"""

from fedcoast.errors import BadFile, BadRound, BadSetting, BadUpload, FedcoastError, MissingExtra
from fedcoast.methods import METHODS, Assessor, CoAst
from fedcoast.methods.assessment import Assessment
from fedcoast.methods.base import Observer
from fedcoast.methods.comparison import Comparison, compare
from fedcoast.methods.recorded_run import RecordedRun, load
from fedcoast.rounds import BFloat16, LazyModels, Round
from fedcoast.storage import Recorder, read_about, replay

__version__ = "0.1.0"

__all__ = [
    "METHODS",
    "Assessment",
    "Assessor",
    "BFloat16",
    "BadFile",
    "BadRound",
    "BadSetting",
    "BadUpload",
    "CoAst",
    "Comparison",
    "FedcoastError",
    "LazyModels",
    "MissingExtra",
    "Observer",
    "RecordedRun",
    "Recorder",
    "Round",
    "compare",
    "load",
    "read_about",
    "replay",
]
