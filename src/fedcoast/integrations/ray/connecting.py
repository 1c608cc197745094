"""A Ray cluster to work on, for as long as the work lasts."""

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
PATIENCE = 10.0  # seconds to wait for an answer


class LostWork(FedcoastError):
    """The cluster did not bring a piece of work to its end, however often it was tried."""


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """The module `ray`, connected: "local" starts a cluster of this machine's cores, else what `ray.init` takes.

    A local cluster can be reached from this machine alone, since whoever reaches a port of Ray may run anything there.
    Where the process is connected already, that cluster is used and left running, whatever the address. What is printed
    meanwhile goes to stderr: Ray reports lost workers on stdout, where answers belong.

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
        with redirect_stdout(sys.stderr):
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
                with _on_loopback(ray):
                    ray.init(address=LOCAL, num_cpus=os.cpu_count(), include_dashboard=False, **quietly)
            else:
                ray.init(address=address, **quietly)
    except Exception as error:  # Ray has no error of its own for each of the ways in which this fails
        reason = str(error).strip().partition("\n")[0]
        raise BadSetting(
            f"no Ray cluster can be reached at {address!r} ({type(error).__name__}: {reason});"
            " start one with `ray start --head` and name its host:port, or use 'local'"
        ) from error
    if address == LOCAL:
        _check_loopback(ray)


@contextmanager
def _on_loopback(ray: Any) -> Iterator[None]:
    """Have Ray start at 127.0.0.1."""
    # Ray takes the address by which others reach this machine, also instead of a `_node_ip_address` of 127.0.0.1, and
    # opens its ports on all. Only where this constant is false, as on macOS, does it keep to loopback. It is looked up
    # at each start, but set by RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER when Ray is imported, which may be over, and for good:
    # a real cluster may be joined later.
    constants = ray._private.ray_constants
    before = getattr(constants, "ENABLE_RAY_CLUSTER", True)
    constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = before


def _check_loopback(ray: Any) -> None:
    """A Ray that no longer knows the constant must not leave its ports open."""
    address = ray.util.get_node_ip_address()
    if not ipaddress.ip_address(address).is_loopback:
        with _in_silence():
            ray.shutdown()
        raise BadSetting(
            f"Ray {ray.__version__} would open a local cluster to others, at {address}, and anyone who reaches it could"
            " run anything here; start one yourself with `ray start --head` behind a firewall and name its host:port"
        )


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
