"""The readers that are fuzzed: each takes bytes that a stranger wrote, and good examples to begin with.

A reader may refuse with one of fedcoast's own errors. Whatever else comes out of it is a finding.
"""

import asyncio
import gzip
import io
import pickle
import shutil
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedcoast import Assessment, CoAst, Recorder, Round, replay
from fedcoast.audit import verify
from fedcoast.audit.artifacts import read_claim
from fedcoast.audit.signing import new_key, read_signed_head, sign_head
from fedcoast.errors import printable
from fedcoast.methods.assessment_files import from_csv
from fedcoast.reports.access_control import AccessControl
from fedcoast.reports.assess_rounds import assess_rounds
from fedcoast.reports.forms import write
from fedcoast.rounds.clients import client_from_json, look_alikes, tidy_name
from fedcoast.rounds.round_view import RoundView
from fedcoast.simulation.datasets.cifar import decode_cifar10
from fedcoast.simulation.datasets.decoded import read_cached
from fedcoast.simulation.datasets.fashion import read_idx
from fedcoast.simulation.datasets.pickles import read_pickle
from fedcoast.simulation.datasets.source_files import File, read_archive
from fedcoast.simulation.datasets.sprites import decode_sprites
from fedcoast.simulation.datasets.stl import decode_stl
from fedcoast.storage.credit_log import read_credit_log
from fedcoast.storage.limits import bytes_in
from fedcoast.storage.model_files import load_model
from fedcoast.storage.run_folder import ground_truth, read_about, recorded
from fedcoast.storage.tensors import open_tensors, read_tensors, write_tensors

CLIENTS = ("ann", "berlin", 7)
ROUNDS = 5


@dataclass(frozen=True)
class Target:
    """`read` is given the bytes; `share` is how often it is run against the others (slow readers less)."""

    read: Callable[[bytes], object]
    examples: list[bytes]
    share: float = 1.0


def names() -> list[str]:
    return list(_MAKERS)


def target(name: str, scratch: Path) -> Target:
    """One reader; its files lie in `scratch`, which is empty."""
    return _MAKERS[name](scratch)


def share(name: str) -> float:
    return _SHARES.get(name, 1.0)


def _model(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"w": rng.normal(size=(4, 3)).astype(np.float32), "b": rng.normal(size=3).astype(np.float32)}


def _rounds() -> list[Round]:
    found = []
    for number in range(1, ROUNDS + 1):
        local = {client: _model(100 * number + place) for place, client in enumerate(CLIENTS)}
        found.append(Round(number, _model(number), local, _model(number + 1), weights=dict.fromkeys(CLIENTS, 2.0)))
    return found


def _recording(folder: Path, **options: Any) -> CoAst:
    assessor = CoAst(keep=0.5, horizon=2)
    with Recorder(folder, ledger=assessor, about={"planted": None}, **options) as recorder:
        for fl_round in _rounds():
            assessor.observe(fl_round)
            recorder.observe(fl_round)
    return assessor


def _in_file(path: Path, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    path.parent.mkdir(parents=True, exist_ok=True)

    def written(data: bytes) -> object:
        path.write_bytes(data)
        return read(path)

    return written


def _all_layers(model: Mapping[str, Any]) -> list[Any]:
    return [np.asarray(getattr(model[name], "widened", model[name])).sum() for name in model]


def _safetensors(scratch: Path) -> Target:
    write_tensors(scratch / "a", {"w": (_model(1)["w"], "float32"), "n": (np.int64([3]), "int64")}, {"facts": [1]})
    write_tensors(scratch / "b", {"h": (np.float32([1, 2]), "bfloat16"), "e": (np.zeros((0, 2)), "float64")})
    read = _in_file(scratch / "in.safetensors", lambda path: read_tensors(path))
    return Target(read, [(scratch / name).read_bytes() for name in "ab"])


def _mapped(scratch: Path) -> Target:
    examples = _safetensors(scratch).examples
    return Target(_in_file(scratch / "in.safetensors", lambda path: _all_layers(open_tensors(path))), examples)


def _npz(scratch: Path) -> Target:
    plain, packed = io.BytesIO(), io.BytesIO()
    np.savez(plain, **_model(1))
    np.savez_compressed(packed, w=np.zeros(1000, ">f8"), s=np.asfortranarray(np.ones((2, 3))))
    return Target(_in_file(scratch / "in.npz", load_model), [plain.getvalue(), packed.getvalue()])


def _pt(scratch: Path) -> Target:
    import torch

    examples = []
    for content in ({"w": torch.ones(3, 2)}, {"state_dict": {"w": torch.zeros(1).expand(9)}, "epoch": 3}):
        file = io.BytesIO()
        torch.save(content, file)
        examples.append(file.getvalue())
        file = io.BytesIO()
        torch.save(content, file, _use_new_zipfile_serialization=False)
        examples.append(file.getvalue())
    return Target(_in_file(scratch / "in.pt", load_model), examples)


def _recorded_file(scratch: Path, name: str, read: Callable[[Path], object], **options: Any) -> Target:
    """One file of a recorded run is replaced, and the run is read."""
    _recording(scratch / "run", **options)
    path = scratch / "run" / name
    return Target(_in_file(path, lambda _: read(scratch / "run")), [path.read_bytes()])


def _round_three(folder: Path) -> object:
    fl_round = next(recorded(folder, after=2))
    view = RoundView(fl_round, fl_round.schema(), "quarantine")
    return view.start, list(view.uploads()), view.end, view.weights


def _credits(scratch: Path) -> Target:
    return _recorded_file(scratch, "rounds/0000000005/credits.json", read_credit_log)


def _run_json(scratch: Path) -> Target:
    return _recorded_file(scratch, "run.json", lambda folder: ground_truth(read_about(folder)))


def _spilled(scratch: Path) -> Target:
    options: dict[str, Any] = {"keep": 0.5, "horizon": 3, "signal": "pruned", "reference": "votes"}
    assessor = CoAst(**options, spill_dir=scratch / "spill")
    for fl_round in _rounds():
        assessor.observe(fl_round)
    assessor.save(scratch / "state")
    (spill_file, *_) = sorted((scratch / "spill").glob("*.held"))

    def read(path: Path) -> object:
        other = CoAst(**options, spill_dir=scratch / "copy")
        other.restore(scratch / "state")
        return other.assessment()

    shutil.copytree(scratch / "spill", scratch / "copy")
    example = spill_file.read_bytes()
    read_written = _in_file(scratch / "copy" / spill_file.name, read)
    return Target(read_written, [example])


def _state(scratch: Path) -> Target:
    assessor = CoAst(keep=0.5, horizon=2)
    for fl_round in _rounds():
        assessor.observe(fl_round)
    assessor.save(scratch / "state")

    def read(path: Path) -> object:
        other = CoAst(keep=0.5, horizon=2)
        other.restore(path)
        return other.assessment().ranks

    return Target(_in_file(scratch / "in.state", read), [(scratch / "state").read_bytes()])


def _answer() -> Assessment:
    assessor = CoAst(keep=0.5, horizon=2)
    for fl_round in _rounds():
        assessor.observe(fl_round)
    return assessor.assessment()


def _used(answer: Assessment) -> object:
    return answer.ranks, answer.mean, answer.to_json(), answer.to_csv()


def _answer_json(scratch: Path) -> Target:
    return Target(lambda data: _used(Assessment.from_json(_text(data))), [_answer().to_json().encode()])


def _answer_csv(scratch: Path) -> Target:
    return Target(lambda data: _used(from_csv(_text(data))), [_answer().to_csv().encode()])


def _report(scratch: Path, ending: str) -> Target:
    write(assess_rounds(_rounds()), scratch / f"report{ending}")
    example = (scratch / f"report{ending}").read_bytes()
    if ending == ".html":  # the chart library in it is four megabytes and never read
        example = b"<html>" + example[example.index(b"<body") :] if b"<body" in example else example
        example = example[:20_000] + example[-20_000:] if len(example) > 200_000 else example
    return Target(_in_file(scratch / f"in{ending}", read_claim), [example])


def _chain(scratch: Path) -> Target:
    return _recorded_file(scratch, "rounds/0000000004/link.json", verify)


def _signed_head(scratch: Path) -> Target:
    _recording(scratch / "run")
    public = new_key(scratch / "key")
    sign_head(verify(scratch / "run"), scratch / "key", scratch / "signed.json")
    read = _in_file(scratch / "in.json", lambda path: read_signed_head(path, public))
    return Target(read, [(scratch / "signed.json").read_bytes()])


def _weights(scratch: Path) -> Target:
    for number in (1, 2):
        clients = scratch / f"round-{number}" / "clients"
        clients.mkdir(parents=True)
        for name in ("ann", "bob"):
            np.savez(clients / f"{name}.npz", w=np.ones(3))
        np.savez(clients.parent / "start.npz", w=np.zeros(3))
        np.savez(clients.parent / "end.npz", w=np.zeros(3))
    read = _in_file(scratch / "round-1" / "weights.json", lambda _: [view.weights for view in replay(scratch)])
    return Target(read, [b'{"ann": 3, "bob": 2.5}'])


def _pickle(scratch: Path) -> Target:
    content = {b"labels": [0, 1], b"data": np.zeros((2, 3072), np.uint8)[:, ::1], b"batch_label": b"one"}
    small = {"label_names": ["a", "b"], "data": np.arange(6).reshape(2, 3), b"t": (1, 2), "n": None}
    examples = [pickle.dumps(small, protocol) for protocol in range(6)] + [pickle.dumps(content, 2)]
    return Target(lambda data: read_pickle(File("batch", data)), examples)


def _cifar(scratch: Path) -> Target:
    batch = {b"labels": [0], b"data": np.zeros((1, 3072), np.uint8)}
    good = File("data_batch", pickle.dumps(batch, 2))

    def read(data: bytes) -> object:
        batches = {f"data_batch_{number}": good for number in range(2, 6)}
        return decode_cifar10({**batches, "data_batch_1": File("data_batch_1", data), "test_batch": good})

    return Target(read, [good.data])


def _idx(scratch: Path) -> Target:
    def read(data: bytes) -> object:
        return read_idx(File("images", data), 3 if data[3:4] == b"\x03" else 1)

    images = bytes((0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 2)) + bytes(12)
    return Target(read, [images, bytes((0, 0, 8, 1, 0, 0, 0, 4, 1, 2, 3, 4))])


def _stl(scratch: Path) -> Target:
    images = bytes(2 * 3 * 96 * 96)

    def read(data: bytes) -> object:
        labels, _, text = data.partition(b"\0")
        parts = {"train_X.bin": images, "train_y.bin": labels, "test_X.bin": images, "test_y.bin": labels[:2]}
        files = {name: File(name, part) for name, part in parts.items()}
        return decode_stl(files | ({"class_names.txt": File("class_names.txt", text)} if text else {}))

    return Target(read, [b"\1\2", b"\1\2\0cat\ndog\n"])


def _sprites(scratch: Path) -> Target:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.zeros((1, 1024, 3), np.uint8)).save(file, "PNG")
    png = File("sprite", file.getvalue())

    def read(data: bytes) -> object:
        image, _, labels = data.partition(b"----")
        others = {f"data_batch_{number}.png": png for number in range(2, 6)}
        named = {"train_lables.json": labels, "test_lables.json": b"[0]", "data_batch_1.png": image}
        files = {name: File(name, part) for name, part in named.items()}
        return decode_sprites({**others, **files, "test_batch.png": png})

    return Target(read, [png.data + b"----[0, 1, 2, 3, 4]"])


def _archive(scratch: Path) -> Target:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        member = tarfile.TarInfo("inside/batch")
        member.size = 20
        tar.addfile(member, io.BytesIO(bytes(20)))
    plain = file.getvalue()[:2048]

    def read(path: Path) -> object:
        data = path.read_bytes()
        path.write_bytes(gzip.compress(data, 1))
        return read_archive(path, "inside", ["batch"])

    return Target(_in_file(scratch / "in.tar.gz", read), [plain])


def _decoded(scratch: Path) -> Target:
    file = io.BytesIO()
    images, labels = np.zeros((2, 2, 2, 1), np.uint8), np.array([0, 1])
    content: dict[str, Any] = {"stamp": "s", "name": "x", "title": "X", "classes": ["a", "b"]}
    content |= {"train_images": images, "train_labels": labels, "test_images": images, "test_labels": labels}
    np.savez(file, allow_pickle=False, **content)
    return Target(_in_file(scratch / "x.decoded.npz", lambda path: read_cached(path, "s")), [file.getvalue()])


def _flower_layer(scratch: Path) -> Target:
    from fedcoast.integrations.flower.npy_layers import read_upload, view

    dtypes = {"w": np.dtype(np.float32)}
    examples = []
    for array in (np.ones((2, 3), np.float32), np.asfortranarray(np.ones((2, 3))), np.float64([1])):
        file = io.BytesIO()
        np.save(file, array)
        examples.append(file.getvalue())
    return Target(lambda data: (read_upload({"w": data}, dtypes)["w"].sum(), view(data).shape), examples)


def _request(scratch: Path) -> Target:
    """Query, host, authorization and cookie of a request, one a line, to a page with and without a token."""
    statuses: list[int] = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        statuses.append(200)

    async def send(message: Any) -> None:
        statuses.append(message.get("status", 0))

    async def receive() -> Any:
        return {}

    def read(data: bytes) -> object:
        query, host, authorization, cookie = (data.split(b"\n") + [b""] * 4)[:4]
        headers = [(b"host", host), (b"authorization", authorization), (b"cookie", cookie)]
        scope = {"type": "http", "query_string": query, "headers": headers, "path": "/"}
        for token in (None, "0123456789abcdef"):
            asyncio.run(AccessControl(inside, token)(scope, receive, send))
        return statuses.clear()

    return Target(read, [b"token=0123456789abcdef\nlocalhost:80\nBearer x\nfedcoast=1; a=b", b"\n[::1]:80\n\n"])


def _names(scratch: Path) -> Target:
    def read(data: bytes) -> object:
        text = _text(data)
        shown = printable(text)
        if any(ord(c) < 32 or 126 < ord(c) < 160 for c in shown):
            raise AssertionError(f"a control character came through: {shown!r}")
        tidy = tidy_name(text)
        if tidy_name(tidy) != tidy:
            raise AssertionError(f"tidied twice differs from once: {text!r}")
        look_alikes([text, "berlin"])
        return client_from_json({"name": text, "type": "int" if text[-1:].isdecimal() else "str"})

    return Target(read, ["berlіn\u200b".encode(), b"-123", "Mu\u0308nchen\x1b[2J\n".encode()])


def _size(scratch: Path) -> Target:
    return Target(lambda data: bytes_in(_text(data)), [b"1.5 GB", b"100 kb"])


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


_MAKERS: dict[str, Callable[[Path], Target]] = {
    "safetensors": _safetensors,
    "safetensors, mapped": _mapped,
    "npz": _npz,
    "pt": _pt,
    "run.json": _run_json,
    "round.json": lambda scratch: _recorded_file(scratch, "rounds/0000000003/round.json", _round_three),
    "credits.json": _credits,
    "link.json": _chain,
    "recorded model": lambda scratch: _recorded_file(scratch, "rounds/0000000003/end.safetensors", _round_three),
    "recorded upload": lambda scratch: _recorded_file(
        scratch, "rounds/0000000003/client-000001.safetensors", _round_three
    ),
    "recorded ballots": lambda scratch: _recorded_file(
        scratch, "rounds/0000000003/client-000001.safetensors", _round_three, ballot_keep=0.5
    ),
    "weights.json": _weights,
    "state": _state,
    "spilled round": _spilled,
    "answer.json": _answer_json,
    "answer.csv": _answer_csv,
    "report.json": lambda scratch: _report(scratch, ".json"),
    "report.html": lambda scratch: _report(scratch, ".html"),
    "signed head": _signed_head,
    "pickle": _pickle,
    "CIFAR batch": _cifar,
    "IDX": _idx,
    "STL labels": _stl,
    "PNG sprite": _sprites,
    "tar.gz": _archive,
    "decoded dataset": _decoded,
    "Flower layer": _flower_layer,
    "live request": _request,
    "client name": _names,
    "size": _size,
}
_SHARES = {
    "pt": 0.3,
    "round.json": 0.3,
    "link.json": 0.05,
    "recorded model": 0.3,
    "recorded upload": 0.15,
    "recorded ballots": 0.15,
    "weights.json": 0.3,
    "spilled round": 0.3,
    "report.html": 0.3,
    "tar.gz": 0.3,
    "PNG sprite": 0.1,
    "STL labels": 0.3,
    "live request": 0.3,
    "answer.json": 0.5,
    "answer.csv": 0.5,
    "IDX": 2.5,
    "pickle": 2.5,
    "Flower layer": 2.5,
    "client name": 2.5,
    "size": 2.5,
    "safetensors": 2,
    "safetensors, mapped": 2,
    "run.json": 1.5,
    "signed head": 2,
}
