"""`python -m fedcoast`."""

from fedcoast.cli import main

if __name__ == "__main__":
    main()
