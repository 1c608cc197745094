"""Reproduces a little table in processes, so that a test can kill it: RUNS RESULTS ROUNDS."""

import sys
from pathlib import Path

from little_tables import little_table, reproduce
from paper.pools import processes
from paper.reproduction import Places

if __name__ == "__main__":
    runs, results, rounds = sys.argv[1:]
    with processes(2) as submit:
        reproduce([little_table((0,), rounds=int(rounds))], Places(Path(runs), Path(results)), submit)
