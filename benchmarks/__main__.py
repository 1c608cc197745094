"""`python -m benchmarks [--smoke]`: every benchmark, one after the other."""

import argparse

from benchmarks import batch_norm, chain, coverage, curves, flower, flower_training, presets, training


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--smoke", action="store_true", help="tiny sizes: does it run, not how fast")
    smoke = parser.parse_args().smoke
    for run in (
        training.run,
        flower_training.start,
        flower.run,
        batch_norm.run,
        curves.run,
        presets.run,
        coverage.run,
        chain.run,
    ):
        run(smoke)


if __name__ == "__main__":
    main()
