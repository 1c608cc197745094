import os

from hypothesis import settings

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
os.environ.setdefault("WANDB_ERROR_REPORTING", "false")

settings.register_profile("fedcoast", deadline=None)  # a busy machine is no failure
settings.load_profile("fedcoast")
