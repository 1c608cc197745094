"""Flower's own programs as real processes on 127.0.0.1, each a process group of its own, ended by its id."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from waiting import wait_until

BIN = Path(sys.executable).parent
QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "PYTHONUNBUFFERED": "1",
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


class Processes:
    """A context in which programs run; whatever is left at the end is killed, with its children."""

    def __init__(self, folder):
        self.folder = Path(folder)
        home = self.folder / "home"
        home.mkdir(parents=True)
        # The programs are found beside this Python: SuperLink and SuperNode start others by name.
        self.environment = {
            **os.environ, **QUIET, "FLWR_HOME": str(home), "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"
        }  # fmt: skip
        self.environment.pop("PYTEST_CURRENT_TEST", None)
        self.running = {}
        self.home = home

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for name in list(self.running):
            self.kill(name)

    def start(self, name, *command):
        log = (self.folder / f"{name}.log").open("ab")
        self.running[name] = subprocess.Popen(
            [str(BIN / command[0]), *command[1:]],
            env=self.environment, cwd=self.folder, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            start_new_session=True,  # its group is its own id: children that outlive it are found by that
        )  # fmt: skip
        log.close()

    def connect_to(self, port):
        """Let `flwr run APP loop` find the SuperLink; waits until it answers."""
        self.home.joinpath("config.toml").write_text(
            f'[superlink]\ndefault = "loop"\n\n[superlink.loop]\naddress = "127.0.0.1:{port}"\ninsecure = true\n'
        )
        wait_until(lambda: listens(port), 60, self.logs)

    def run(self, *command, timeout):
        done = subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            env=self.environment, cwd=self.folder, capture_output=True, text=True, timeout=timeout,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr + self.logs()
        return done.stdout

    def kill(self, name, grace=5.0):
        """End a program as an operator would, then everything it left behind."""
        process = self.running.pop(name)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(grace)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def logs(self):
        files = sorted(self.folder.glob("*.log"))
        return "\n".join(f"== {file.name}\n{file.read_text(errors='replace')[-4000:]}" for file in files)
