import numpy as np
import pytest
import torch

import kinds
from fedcoast import BFloat16, CoAst, Round
from fedcoast.rounds.arrays import UnusableArray, arithmetic, read
from fedcoast.rounds.schema import schema_of

TORCH = {
    torch.float16: "float16", torch.float32: "float32", torch.float64: "float64", torch.bool: "bool",
    torch.int8: "int8", torch.int16: "int16", torch.int32: "int32", torch.int64: "int64",
    torch.uint8: "uint8", torch.uint16: "uint16", torch.uint32: "uint32", torch.uint64: "uint64",
}  # fmt: skip


@pytest.mark.parametrize("dtype", TORCH)
def test_a_tensor_shares_its_memory_with_the_array(dtype):
    tensor = torch.zeros(6, dtype=dtype).reshape(2, 3)
    array, kind = read(tensor)
    assert (kind, array.dtype.name, array.shape) == (TORCH[dtype], TORCH[dtype], (2, 3))
    assert array.ctypes.data == tensor.data_ptr()


def test_a_numpy_array_is_not_copied():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert read(array)[0] is array
    assert arithmetic(array) is array


def test_a_view_is_read_in_place():
    whole = np.arange(24, dtype=np.float32).reshape(4, 6)
    assert np.shares_memory(read(whole.T[::2])[0], whole)


def test_float32_models_are_not_copied_on_their_way_to_the_method():
    model = torch.nn.Linear(3, 2).state_dict()
    schema = schema_of(model)
    for name, array in schema.read(model).items():
        assert array.ctypes.data == model[name].data_ptr()


def test_parameters_that_require_gradients_are_read_in_place():
    parameter = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    array, kind = read(parameter)
    assert (array.tolist(), kind) == ([1.0, 2.0], "float32")
    assert array.ctypes.data == parameter.data_ptr()
    assert parameter.requires_grad
    assert read(parameter * 2)[0].tolist() == [2.0, 4.0]


def test_a_tensor_subclass_is_a_tensor():
    class Mine(torch.Tensor):
        pass

    array, kind = read(torch.tensor([1.5, -2.0], dtype=torch.bfloat16, requires_grad=True).as_subclass(Mine))
    assert (array.tolist(), kind) == ([1.5, -2.0], "bfloat16")


def test_bfloat16_tensors_are_widened_without_loss():
    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    tensor = bits.view(torch.bfloat16)
    finite = torch.isfinite(tensor)
    array, kind = read(tensor[finite])
    assert (kind, array.dtype) == ("bfloat16", np.float32)
    assert array.tolist() == tensor[finite].float().tolist()
    assert BFloat16(array).bits().tolist() == bits[finite].numpy().view(np.uint16).tolist()


def test_bfloat16_bits_come_back_in_every_shape():
    for array in kinds.some("bfloat16", 0):
        again = BFloat16.from_bits(array.bits())
        assert again.widened.shape == array.widened.shape == array.bits().shape
        assert again.widened.tobytes() == array.widened.tobytes()


def test_big_endian_arrays_are_turned_to_the_machines_order():
    array, kind = read(np.array([1.5, -2.0], ">f4"))
    assert (array.tolist(), kind, array.dtype.isnative) == ([1.5, -2.0], "float32", True)


def test_arrays_of_other_libraries_come_by_dlpack():
    class Elsewhere:
        def __init__(self, array):
            self._array = array

        def __dlpack__(self, **options):
            return self._array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self._array.__dlpack_device__()

    source = np.float32([1, 2])
    array, kind = read(Elsewhere(source))
    assert (array.tolist(), kind) == ([1, 2], "float32")
    assert np.shares_memory(array, source)


@pytest.mark.parametrize(
    "value", [None, 1.0, "w", b"w", [1.0], (1.0,), {}, object(), np.longdouble(1), 1j, np.str_("w")]
)
def test_what_is_no_array_is_said_so(value):
    with pytest.raises(UnusableArray, match=r"wanted|must be"):
        read(value)


def test_half_floats_are_compared_in_single_precision():
    assert arithmetic(np.float16([1.0])).dtype == np.float32
    # In half precision the first difference is rounded up to the second, and the tie would go to the lower index.
    start = np.float16([2048, 0])
    local = np.float16([4094, 2047])
    assert float(local[0]) - float(start[0]) < float(local[1]) - float(start[1])
    assessor = CoAst.votes(keep=0.5, horizon=1)
    for number, end in enumerate((start, np.float16([2048, 1]))):
        assessor.observe(Round(number, {"w": start}, {"a": {"w": local}}, {"w": end}))
    assert assessor.assessment().scores == {"a": 1}


def test_the_layout_of_a_real_network_lets_no_statistics_vote():
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.Flatten(), torch.nn.Linear(8, 3)
    )
    schema = schema_of(network.state_dict())
    assert [entry.name for entry in schema.trainable] == [name for name, _ in network.named_parameters()]
    silent = {entry.name: entry.dtype for entry in schema.entries if not entry.trainable}
    assert silent == {"1.running_mean": "float32", "1.running_var": "float32", "1.num_batches_tracked": "int64"}
