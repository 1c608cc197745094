"""One thing that is not as it was recorded, or does not follow from the recording."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """Which file, of which round, and what differs."""

    file: str
    what: str
    round: int | None = None

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"
