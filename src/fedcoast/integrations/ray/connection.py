"""Connects to a Ray cluster for the duration of a computation."""

import ipaddress
import os
import re
import socket
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from fedcoast.errors import BadSetting, FedcoastError, require

LOCAL = "local"
CONNECT_TIMEOUT = 10.0  # seconds
LOOPBACK_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Ray's own setting: with 0, as on macOS, a local cluster listens at 127.0.0.1 only. Ray reads it when imported."""


class ClusterError(FedcoastError):
    """The cluster could not finish a piece of work, even after retries."""


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """The module `ray`, connected: "local" starts a cluster of this machine's cores, else what `ray.init` takes.

    A local cluster listens on loopback only, since anyone who reaches a port of Ray can run any code there. If the
    process is connected already, that cluster is used and left running, regardless of the address. Output printed
    meanwhile goes to stderr: Ray reports lost workers on stdout, where results belong.

        with connect("local") as ray:
            ray.get(ray.remote(work).remote(…))
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # read when Ray is imported: no telemetry
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # later versions of Ray do this by default
    ray = _import_ray(address)
    if ray.is_initialized():
        yield ray
        return
    _join(ray, address)
    try:
        with redirect_stdout(sys.stderr):
            yield ray
    finally:
        with _without_warnings():
            ray.shutdown()


def _import_ray(address: str) -> Any:
    if address != LOCAL or LOOPBACK_ONLY in os.environ:
        return require("ray", extra="cluster")
    os.environ[LOOPBACK_ONLY] = "0"
    try:
        return require("ray", extra="cluster")
    finally:
        del os.environ[LOOPBACK_ONLY]


def _join(ray: Any, address: str) -> None:
    quietly: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        _check_reachable(address)
        with _without_warnings():
            if address == LOCAL:
                ray.init(address=LOCAL, num_cpus=os.cpu_count(), include_dashboard=False, **quietly)
            else:
                ray.init(address=address, **quietly)
    except Exception as error:  # Ray has no error class for each way in which this fails
        reason = str(error).strip().partition("\n")[0]
        raise BadSetting(
            f"no Ray cluster can be reached at {address!r} ({type(error).__name__}: {reason});"
            " start one with `ray start --head` and give its host:port, or use 'local'"
        ) from error
    if address == LOCAL:
        _check_loopback(ray)


def _check_loopback(ray: Any) -> None:
    """Anyone who reaches a port of Ray can run any code: a local cluster that others can reach is stopped at once."""
    address = ray.util.get_node_ip_address()
    if not ipaddress.ip_address(address).is_loopback:
        with _without_warnings():
            ray.shutdown()
        raise BadSetting(
            f"Ray {ray.__version__} would open a local cluster to other machines, at {address}; set {LOOPBACK_ONLY}=0"
            " before Ray is imported, or call ray.init yourself, or start a cluster behind a firewall with"
            " `ray start --head` and give its host:port"
        )


def _check_reachable(address: str) -> None:
    """Ray ends the whole process if nothing answers at host:port; raise an error instead."""
    if place := re.fullmatch(r"\[?([^\[\]/]+?)\]?:(\d+)", address):
        socket.create_connection((place[1], int(place[2])), timeout=CONNECT_TIMEOUT).close()


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Ray leaves files and processes to the garbage collector, which Python warns about."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
