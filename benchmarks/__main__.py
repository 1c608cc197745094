"""`python -m benchmarks [--smoke]`: every benchmark, one after the other."""

import argparse
import subprocess
import sys

from benchmarks import (
    attacks,
    batch_norm,
    chain,
    coverage,
    flags,
    flower,
    flower_training,
    fuzz,
    kills,
    natural,
    participation,
    presets,
    rates,
    training,
    training_options,
    verdicts,
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: does it run, not how fast")
    smoke = parser.parse_args().smoke
    _speed(smoke)
    for run in (
        training.run,
        training_options.run,
        flower_training.start,
        flower.run,
        batch_norm.run,
        presets.run,
        rates.run,
        coverage.run,
        chain.run,
        flags.run,
        attacks.run,
        fuzz.run,
        kills.run,
        verdicts.run,
        natural.run,
        participation.run,
    ):
        run(smoke)


def _speed(smoke: bool) -> None:
    """In a process of its own: its libraries must not have started threads."""
    subprocess.run([sys.executable, "-m", "benchmarks.speed", *(["--smoke"] if smoke else [])], check=True)


if __name__ == "__main__":
    main()
