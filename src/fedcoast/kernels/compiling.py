"""The compiled kernels: numba compiles them in the background, so that nobody waits for a compiler.

Until then, and where numba is not installed, NumPy does the same work to the same bits.
"""

import atexit
import importlib.util
import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

WORTHWHILE = 1 << 16  # entries of a model below which neither machine code nor threads pay

_HIGHLIGHTING = "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"  # numba reads it when it is imported

_log = logging.getLogger(__name__)

_ready: dict[str, ModuleType] = {}
_threads: dict[str, threading.Thread] = {}
_starting = threading.Lock()
_leaving = threading.Event()


@contextmanager
def plain_messages() -> Iterator[None]:
    """Import numba here: it then does not highlight its messages.

    If colorama is installed, each highlighted message (numba makes and drops many while it compiles) replaces
    `sys.stdout` of the whole process for a moment, and what another thread prints then can get lost.
    """
    if _HIGHLIGHTING in os.environ:  # the user decides
        yield
        return
    os.environ[_HIGHLIGHTING] = "1"
    try:
        yield
    finally:
        os.environ.pop(_HIGHLIGHTING, None)


def kernels(kind: str, wait: bool = False) -> ModuleType | None:
    """The module `kernels.compiled` if it is ready for "float32" or "float64"; else None, and compiling starts."""
    if kind in _ready:
        return _ready[kind]
    with _starting:
        if kind not in _threads and importlib.util.find_spec("numba") is not None:
            _threads[kind] = threading.Thread(target=_prepare, args=(kind,), name=f"compile {kind}", daemon=True)
            _threads[kind].start()
    if wait and kind in _threads:
        _threads[kind].join()
    return _ready.get(kind)


def _prepare(kind: str) -> None:
    try:
        module = importlib.import_module("fedcoast.kernels.compiled")
        if importlib.import_module("numba.core.config").DISABLE_JIT:
            return
        for _ in module.steps(kind):
            if _leaving.is_set():
                return
        _ready[kind] = module
    except Exception as error:
        _log.warning("numba kernels unavailable; falling back to NumPy (%s: %s)", type(error).__name__, error)


@atexit.register
def _leave() -> None:
    """No thread may be inside the compiler when the interpreter ends: wait for the kernel that is being compiled."""
    _leaving.set()
    for thread in _threads.values():
        thread.join()
