"""Good files made bad: bytes changed, pieces moved, and values in JSON replaced while the file stays JSON."""

import copy
import json
import random
from typing import Any

INTERESTING = (0, 1, 0x7F, 0x80, 0xFF)
NUMBERS = (-1, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 3, 10**30, 10**400, -(2**63), 0.5, 1e308, float("nan"), float("inf"),
    "", "x", "\x1b[2J", "\ud800", "x" * 300, "../../etc/passwd", "end of round 999",
    [], {}, [0], [1, 2], {"name": "x", "type": "str"},
)  # fmt: skip
LONGEST = 60_000


def mutated(rng: random.Random, examples: list[bytes]) -> bytes:
    """One bad file, made of a good one."""
    data = rng.choice(examples)
    kind = rng.random()
    if kind < 0.4 and (found := _json(rng, data)) is not None:
        return found
    return _bytes(rng, data, rng.choice(examples))


def _bytes(rng: random.Random, data: bytes, other: bytes) -> bytes:
    content = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 2, 4, 8))):
        if not content:
            return bytes(rng.choices(range(256), k=rng.randrange(20)))
        at, kind = rng.randrange(len(content)), rng.randrange(10)
        end = min(len(content), at + rng.choice((1, 2, 4, 8, 16, 64)))
        if kind == 0:
            content[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            content[at] = rng.choice(INTERESTING)
        elif kind == 2:
            content[at] = rng.randrange(256)
        elif kind == 3:
            del content[at:end]
        elif kind == 4:
            del content[at:]
        elif kind == 5:
            content[at:at] = content[at:end] * rng.choice((1, 2, 100))
        elif kind == 6:
            width = rng.choice((2, 4, 8))
            number = rng.choice(NUMBERS) % 2 ** (8 * width)
            content[at : at + width] = number.to_bytes(width, rng.choice(("little", "big")))
        elif kind == 7:
            content[at:at] = bytes(rng.choices(range(256), k=rng.randrange(1, 9)))
        elif kind == 8 and other:
            start = rng.randrange(len(other))
            content[at:end] = other[start : start + rng.choice((4, 16, 64, 1000))]
        else:
            content[at:end] = bytes(end - at)
    return bytes(content[:LONGEST])


def _json(rng: random.Random, data: bytes) -> bytes | None:
    """A value replaced, removed or doubled in JSON, or in the header of a safetensors file; None for other files."""
    if data[:1] in (b"{", b"["):
        return _dumped(rng, _loaded(data))
    if data[8:9] == b"{":
        length = int.from_bytes(data[:8], "little")
        header = _loaded(data[8 : 8 + length])
        facts = (header.get("__metadata__") or {}).get("fedcoast") if isinstance(header, dict) else None
        if facts is not None and rng.random() < 0.5:  # what fedcoast itself wrote lies in there as text
            changed = _dumped(rng, _loaded(facts.encode()))
            header["__metadata__"]["fedcoast"] = changed.decode("utf-8", "replace")
            text = json.dumps(header).encode()
        else:
            text = _dumped(rng, header)
        return len(text).to_bytes(8, "little") + text + data[8 + length :]
    return None


def _loaded(data: bytes) -> Any:
    return json.loads(data)


def _dumped(rng: random.Random, value: Any) -> bytes:
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = _replaced(rng, value)
    return json.dumps(value).encode()


def _replaced(rng: random.Random, value: Any) -> Any:
    """The same with one place changed, found by walking down."""
    if isinstance(value, dict | list) and value and rng.random() < 0.92:
        keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
        key, act = rng.choice(keys), rng.random()
        if act < 0.06:
            del value[key]
        elif act < 0.1 and isinstance(value, dict):
            value[rng.choice(("", "x", "__metadata__", "9" * 400, "\x00"))] = value.pop(key)
        elif act < 0.14 and isinstance(value, list):
            value.append(value[key])
        else:
            value[key] = _replaced(rng, value[key])
        return value
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.5:
        return rng.choice((value + 1, -value, value * 2, str(value), float(value) if abs(value) < 1e300 else 0))
    return copy.copy(rng.choice(VALUES))
