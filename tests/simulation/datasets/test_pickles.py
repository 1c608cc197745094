import contextlib
import os
import pickle

import numpy as np
import pytest

from fedcoast.errors import BadFile
from fedcoast.simulation.datasets import pickles
from fedcoast.simulation.datasets.pickles import read_pickle
from fedcoast.simulation.datasets.source_files import File

DATA = np.arange(24, dtype=np.uint8).reshape(4, 6)


def read(data: bytes):
    return read_pickle(File("batch_1", data))


class Evil:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(6))
def test_arrays_and_containers_come_back_from_every_protocol(protocol):
    content = {"data": DATA, "labels": [1, 2], "order": np.asfortranarray(DATA), "wide": np.array([1, 300])}
    back = read(pickle.dumps(content, protocol=protocol))
    assert back["labels"] == [1, 2]
    assert np.array_equal(back["data"], DATA)
    assert np.array_equal(back["order"], DATA)
    assert np.array_equal(back["wide"], [1, 300])


def test_python_2_wrote_text_as_bytes_and_named_numpy_otherwise():
    old = pickle.dumps({"data": DATA}, protocol=2).replace(b"numpy._core", b"numpy.core")
    old = old.replace(b"X\x04\x00\x00\x00data", b"U\x04data")
    assert b"numpy.core" in old
    assert b"U\x04data" in old
    assert np.array_equal(read(old)["data"], DATA)


def test_numbers_written_on_another_machine_keep_their_value():
    assert read(pickle.dumps({"labels": np.array([1, 300], ">i4")}, protocol=2))["labels"].tolist() == [1, 300]


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_that_would_run_a_command_is_refused_and_runs_nothing(tmp_path, protocol):
    mark = tmp_path / "mark"
    evil = pickle.dumps({"data": Evil(os.system, f"touch {mark}")}, protocol=protocol)
    with pytest.raises(BadFile, match=r"batch_1: .* asks for (posix|nt)\.system"):
        read(evil)
    assert not mark.exists()


@pytest.mark.parametrize("function", [eval, getattr, np.load, np.frombuffer, pickle.loads])
def test_no_other_global_is_handed_out(function):
    with pytest.raises(BadFile, match="batch_1: wanted only containers and arrays"):
        read(pickle.dumps({"data": Evil(function, "x")}, protocol=2))


def test_arrays_of_objects_are_refused():
    with pytest.raises(BadFile, match=r"batch_1: .*not of integers"):
        read(pickle.dumps({"data": np.array([{}], dtype=object)}, protocol=2))


def test_a_pickle_cannot_leave_anything_behind_in_the_reader():
    # Asks for numpy.ndarray and gives that global a state, which would set attributes on a function or a class.
    with pytest.raises(BadFile, match="a state was given to a function"):
        read(b"\x80\x02cnumpy\nndarray\n}U\x01xK\x01sb.")
    assert not hasattr(pickles._STAND_INS["numpy", "ndarray"], "x")


def test_an_array_whose_bytes_do_not_fill_its_shape_is_refused():
    whole = pickle.dumps({"data": DATA}, protocol=2)
    assert b"K\x04K\x06\x86" in whole
    with pytest.raises(BadFile, match=r"24 bytes for an array of shape \(5, 6\)"):
        read(whole.replace(b"K\x04K\x06\x86", b"K\x05K\x06\x86"))


def test_a_pickle_torn_anywhere_is_refused_by_name():
    whole = pickle.dumps({"data": DATA, "labels": [1, 2, 3]}, protocol=2)
    for length in range(len(whole)):
        with pytest.raises(BadFile, match="batch_1: wanted a whole pickle"):
            read(whole[:length])


def test_a_pickle_with_any_byte_altered_is_read_or_refused_but_never_crashes():
    whole = pickle.dumps({"data": DATA, "labels": [1, 2, 3]}, protocol=2)
    for place in range(len(whole)):
        altered = bytearray(whole)
        altered[place] ^= 0x15
        with contextlib.suppress(BadFile):
            assert isinstance(read(bytes(altered)), dict)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pickle.dumps({}) + b"more", "nothing after it, got 4 more bytes"),
        (pickle.dumps([1, 2]), "wanted a dictionary, got list"),
        (b"", "wanted a whole pickle, got ValueError"),
        (b"<html>not found</html>", "wanted a whole pickle"),
    ],
)
def test_what_is_no_dictionary_is_refused(data, message):
    with pytest.raises(BadFile, match=f"batch_1: .*{message}"):
        read(data)
