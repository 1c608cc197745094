"""`fedcoast` and `python -m fedcoast`: the command line, or the one line that says how to install it."""

import sys

from fedcoast.errors import MissingExtra, require

MISSING_EXTRA = 5


def main() -> None:
    """Run the command line, which needs the extra `cli`."""
    try:
        for module in ("typer", "rich"):
            require(module, extra="cli")
    except MissingExtra as error:
        print(f"fedcoast: {error}", file=sys.stderr)
        sys.exit(MISSING_EXTRA)
    from fedcoast.cli import main as run

    run()


if __name__ == "__main__":
    main()
