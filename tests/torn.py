"""Files that are torn, altered or not what their name says."""

import json
import os
import pickle


def header(content, data=b"", length=None):
    """A safetensors file with this header, right or wrong."""
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def spec(dtype="F32", shape=(4,), offsets=(0, 16)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def cuts(data, count=8):
    """Lengths at which a file may be torn: around what matters in its first bytes, and everywhere else evenly."""
    even = [len(data) * part // count for part in range(1, count)]
    return sorted({0, 1, 4, 7, 8, 9, 20, *even, len(data) - 1} & set(range(len(data))))


ZEROS = bytes(16)

SAFETENSORS = {
    "empty": b"",
    "text": b"these are not weights",
    "zeros": bytes(64),
    "all ones": b"\xff" * 64,
    "a zip file": b"PK\x03\x04" + bytes(60),
    "a pickle": pickle.dumps({"w": [1.0]}),
    "a huge header length": header({"w": spec()}, ZEROS, length=2**63 - 1),
    "a header length beyond 64 bits": b"\xff" * 8 + header({"w": spec()}, ZEROS)[8:],
    "a header length too short": header({"w": spec()}, ZEROS, length=10),
    "a header length too long": header({"w": spec()}, ZEROS, length=200),
    "a header of length zero": header(b"", ZEROS),
    "a header that is not JSON": header(b"{'w': 1}          ", ZEROS),
    "a header that is not UTF-8": header(b'{"\xff\xfe": 1}', ZEROS),
    "a header that is a list": header([1, 2, 3], ZEROS),
    "a header that is a number": header(b"3", ZEROS),
    "a header that is deep": header(b'{"w":' + b"[" * 5000 + b"]" * 5000 + b"}", ZEROS),
    "a layer that is a number": header({"w": 3}, ZEROS),
    "no offsets": header({"w": {"dtype": "F32", "shape": [4]}}, ZEROS),
    "no shape": header({"w": {"dtype": "F32", "data_offsets": [0, 16]}}, ZEROS),
    "negative offsets": header({"w": spec(offsets=(-16, 0))}, ZEROS),
    "offsets reversed": header({"w": spec(offsets=(16, 0))}, ZEROS),
    "offsets beyond the file": header({"w": spec(offsets=(0, 64), shape=(16,))}, ZEROS),
    "overlapping offsets": header({"w": spec(), "v": spec()}, ZEROS),
    "a hole between layers": header({"w": spec(), "v": spec(offsets=(20, 36))}, bytes(36)),
    "bytes after the last layer": header({"w": spec()}, bytes(32)),
    "a shape of another size": header({"w": spec(shape=(5,))}, ZEROS),
    "a negative shape": header({"w": spec(shape=(-4,))}, ZEROS),
    "a shape that overflows": header({"w": spec(shape=(2**62, 2**62))}, ZEROS),
    "a shape of words": header({"w": spec(shape=("four",))}, ZEROS),
    "float8": header({"w": spec(dtype="F8_E4M3", shape=(16,))}, ZEROS),
    "complex": header({"w": spec(dtype="C64", shape=(2,))}, ZEROS),
    "an unknown dtype": header({"w": spec(dtype="F9")}, ZEROS),
    "a dtype that is a number": header({"w": spec(dtype=32)}, ZEROS),
    "metadata that is a number": header({"__metadata__": 3, "w": spec()}, ZEROS),
    "metadata of numbers": header({"__metadata__": {"fedcoast": 3}, "w": spec()}, ZEROS),
    "facts that are not JSON": header({"__metadata__": {"fedcoast": "{"}, "w": spec()}, ZEROS),
    "facts that are deep": header({"__metadata__": {"fedcoast": "[" * 100_000}, "w": spec()}, ZEROS),
}


class Malicious:
    """Unpickling this runs a command."""

    def __init__(self, mark):
        self._command = f'echo run > "{mark}"'

    def __reduce__(self):
        return os.system, (self._command,)
