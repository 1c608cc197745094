"""Which processes a process started, read from the system."""

from pathlib import Path


def of(parent: int) -> list[int]:
    """The spawned workers among the children of a process."""
    children = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            facts = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            command = (status.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if facts.get("PPid", "").strip() == str(parent) and b"spawn_main" in command:
            children.append(int(status.parent.name))
    return sorted(children)
