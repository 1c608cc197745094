"""A Ray cluster to work on, for as long as the work lasts."""

import os
import re
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fedcoast.errors import BadSetting, FedcoastError, require

LOCAL = "local"
PATIENCE = 10.0  # seconds to wait for an answer


class LostWork(FedcoastError):
    """The cluster did not bring a piece of work to its end, however often it was tried."""


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """The module `ray`, connected: "local" starts a cluster of this machine's cores, else what `ray.init` takes.

    Where the process is connected already, that cluster is used and left running, whatever the address.

        with connect("local") as ray:
            ray.get(ray.remote(work).remote(…))
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported: nothing is sent home for us
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # as Ray will soon do by itself
    ray = require("ray", extra="cluster")
    if ray.is_initialized():
        yield ray
        return
    _join(ray, address)
    try:
        yield ray
    finally:
        with _in_silence():
            ray.shutdown()


def _join(ray: Any, address: str) -> None:
    quietly: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        _knock(address)
        with _in_silence():
            if address == LOCAL:
                ray.init(address=LOCAL, num_cpus=os.cpu_count(), include_dashboard=False, **quietly)
            else:
                ray.init(address=address, **quietly)
    except Exception as error:  # Ray has no error of its own for each of the ways in which this fails
        reason = str(error).strip().partition("\n")[0]
        raise BadSetting(
            f"no Ray cluster can be reached at {address!r} ({type(error).__name__}: {reason});"
            " start one with `ray start --head` and name its host:port, or use 'local'"
        ) from error


def _knock(address: str) -> None:
    """Ray ends the whole process where nobody answers at host:port; an error is wanted."""
    if place := re.fullmatch(r"\[?([^\[\]/]+?)\]?:(\d+)", address):
        socket.create_connection((place[1], int(place[2])), timeout=PATIENCE).close()


@contextmanager
def _in_silence() -> Iterator[None]:
    """Ray leaves files and processes to the garbage collector, which Python warns about; nobody can mend that here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
