"""The command line as a user runs it, in this process, which is faster than another one."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace
from unittest import mock

from fedcoast.cli import main


def fedcoast(*arguments):
    done = SimpleNamespace(code=0)
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        try:
            with mock.patch.object(sys, "argv", ["fedcoast", *map(str, arguments)]):
                main()
        except SystemExit as end:
            done.code = end.code or 0
    done.stdout, done.stderr = out.getvalue(), err.getvalue()
    return done
