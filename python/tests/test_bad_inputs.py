# SPDX-License-Identifier: MIT
"""What is refused, by which exception, and that the text names the argument and the numbers."""
import pickle

import numpy as np
import pytest

import isobit
from conftest import MODEL, normal, same_bits


def f(*shape):
    return np.ones(shape, np.float32)


def refuses(error, text, function, *arguments, **options):
    with pytest.raises(error) as caught:
        function(*arguments, **options)
    assert text in str(caught.value), str(caught.value)
    assert "\n" not in str(caught.value)
    return caught.value


ROW_FUNCTIONS = [isobit.softmax, isobit.layernorm, isobit.rmsnorm, isobit.relu, isobit.gelu]


# ------------------------------------------------------------------------------------ types


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int32, ">f4", bool, complex, object])
def test_no_type_is_converted(dtype):
    wrong = np.ones((2, 2), dtype)
    name = str(np.dtype(dtype))
    for function in ROW_FUNCTIONS + [isobit.silu, isobit.tanh]:
        refuses(TypeError, f"x: float32 expected, got {name}", function, wrong)
        refuses(TypeError, f"out: float32 expected, got {name}", function, f(2, 2), out=wrong)
    refuses(TypeError, f"a: float32 expected, got {name}", isobit.gemm, wrong, f(2, 2))
    refuses(TypeError, f"b: float32 expected, got {name}", isobit.gemm, f(2, 2), wrong)
    refuses(TypeError, f"bias: float32 expected, got {name}", isobit.gemm, f(2, 2), f(2, 2),
            bias=wrong[0])
    refuses(TypeError, f"residual: float32 expected, got {name}", isobit.gemm, f(2, 2), f(2, 2),
            residual=wrong)
    refuses(TypeError, f"weight: float32 expected, got {name}", isobit.linear, f(2, 2), wrong)
    refuses(TypeError, f"weight: float32 expected, got {name}", isobit.PackedLinear, wrong)
    refuses(TypeError, f"x: float32 expected, got {name}", isobit.PackedLinear(f(2, 2)), wrong)
    refuses(TypeError, f"gamma: float32 expected, got {name}", isobit.rmsnorm, f(2, 2), wrong[0])
    refuses(TypeError, f"beta: float32 expected, got {name}", isobit.layernorm, f(2, 2), f(2),
            wrong[0])
    refuses(TypeError, f"sum_out: float32 expected, got {name}", isobit.layernorm, f(2, 2),
            sum_out=wrong)
    for i, letter in enumerate("qkv"):
        tensors = [f(2, 2), f(2, 2), f(2, 2)]
        tensors[i] = wrong
        refuses(TypeError, f"{letter}: float32 expected, got {name}", isobit.attention, *tensors)
    refuses(TypeError, f"bias: float32 expected, got {name}", isobit.attention, *[f(2, 2)] * 3,
            bias=wrong)


def test_what_is_no_array():
    refuses(TypeError, "x: float32 expected, got float64", isobit.relu, [1.0, 2.0])
    refuses(TypeError, "x: an array expected, got None", isobit.relu, None)
    refuses(TypeError, "x: float32 expected", isobit.relu, "text")
    refuses(TypeError, "out: a NumPy array expected, got list", isobit.relu, f(2), out=[0.0, 0.0])
    refuses(TypeError, "x: a masked array", isobit.softmax, np.ma.masked_array(f(2), [0, 1]))
    refuses(TypeError, "eps: a number expected, got str", isobit.rmsnorm, f(2), eps="1e-5")
    refuses(TypeError, "alpha: a number expected, got NoneType", isobit.gemm, f(2, 2), f(2, 2),
            alpha=None)
    refuses(TypeError, "past: an int expected, got float", isobit.attention, *[f(2, 2)] * 3,
            past=1.0)
    refuses(TypeError, "window: an int expected, got str", isobit.attention, *[f(2, 2)] * 3,
            window="1")
    refuses(ValueError, "window: 1 at least, or None; got 0", isobit.attention, *[f(2, 2)] * 3,
            window=0)
    refuses(TypeError, "softcap: a number expected, got str", isobit.attention, *[f(2, 2)] * 3,
            softcap="50")
    for cap in (0, -1, float("nan"), float("inf")):
        refuses(ValueError, "softcap: above 0 and finite, or None", isobit.attention,
                *[f(2, 2)] * 3, softcap=cap)
    refuses(TypeError, "lengths: integers expected, got float64", isobit.softmax, f(2, 2),
            lengths=[1.0, 2.0])
    refuses(TypeError, "mask: bool or uint8 expected, got float32", isobit.softmax, f(2, 2),
            mask=f(2, 2))


# ----------------------------------------------------------------------------------- shapes


def test_shapes():
    refuses(ValueError, "a has 3 columns and b has 4 rows (shapes (2, 3), (4, 5))", isobit.gemm,
            f(2, 3), f(4, 5))
    refuses(ValueError, "a: 2 dimensions expected, got 3 (shape (1, 2, 3))", isobit.gemm,
            f(1, 2, 3), f(3, 3))
    refuses(ValueError, "b: 2 dimensions expected, got 1 (shape (3,))", isobit.gemm, f(2, 3), f(3))
    refuses(ValueError, "a: 2 dimensions expected, got 0", isobit.gemm, np.float32(1), f(3, 3))
    refuses(ValueError, "out: shape (2, 5) expected, got (2, 4)", isobit.gemm, f(2, 3), f(3, 5),
            out=f(2, 4))
    refuses(ValueError, "bias: shape (5,) expected, got (2,)", isobit.gemm, f(2, 3), f(3, 5),
            bias=f(2))
    refuses(ValueError, "residual: shape (2, 5) expected, got (5,)", isobit.gemm, f(2, 3), f(3, 5),
            residual=f(5))
    refuses(ValueError, "beta is 1.0, and there is no out", isobit.gemm, f(2, 3), f(3, 5), beta=1)
    for weight in (f(5, 3), isobit.PackedLinear(f(5, 3))):
        refuses(ValueError, "x: 3 columns expected (weight is (5, 3)), got shape (2, 5)",
                isobit.linear, f(2, 5), weight)
        refuses(ValueError, "x: at least 1 dimension expected, got 0", isobit.linear,
                np.float32(1), weight)
        refuses(ValueError, "out: shape (2, 5) expected, got (5, 2)", isobit.linear, f(2, 3),
                weight, out=f(5, 2))
        refuses(ValueError, "bias: shape (5,) expected, got (3,)", isobit.linear, f(2, 3), weight,
                f(3))
        refuses(ValueError, "residual: shape (2, 5) expected, got (2, 3)", isobit.linear, f(2, 3),
                weight, residual=f(2, 3))
    refuses(ValueError, "weight: 2 dimensions expected, got 1", isobit.PackedLinear, f(3))
    refuses(ValueError, "bias: the PackedLinear has one", isobit.linear, f(2, 3),
            isobit.PackedLinear(f(5, 3), f(5)), f(5))
    for function in (isobit.softmax, isobit.layernorm, isobit.rmsnorm):
        refuses(ValueError, "x: at least 1 dimension expected, got 0", function, np.float32(1))
        refuses(ValueError, "out: shape (2, 3) expected, got (3, 2)", function, f(2, 3),
                out=f(3, 2))
    refuses(ValueError, "gamma: shape (3,) expected, got (1, 3)", isobit.rmsnorm, f(2, 3), f(1, 3))
    refuses(ValueError, "beta: shape (3,) expected, got (4,)", isobit.layernorm, f(2, 3), f(3),
            f(4))
    refuses(ValueError, "sum_out: shape (2, 3) expected, got (3,)", isobit.layernorm, f(2, 3),
            sum_out=f(3))
    refuses(ValueError, "lengths: shape (2,) expected, got (3,)", isobit.softmax, f(2, 3),
            lengths=[1, 2, 3])
    refuses(ValueError, "lengths: values from 0 to 3 expected, got 2 to 4", isobit.softmax,
            f(2, 3), lengths=[2, 4])
    refuses(ValueError, "lengths: values from 0 to 3 expected, got -1 to 1", isobit.softmax,
            f(2, 3), lengths=[-1, 1])
    refuses(ValueError, "mask: shape (2,) does not broadcast to (2, 3)", isobit.softmax, f(2, 3),
            mask=np.ones(2, bool))


def test_shapes_of_attention():
    def q(*shape):
        return f(*shape)

    run = isobit.attention
    refuses(ValueError, "q: 2 to 4 dimensions expected", run, f(3), f(3), f(3))
    refuses(ValueError, "got 5 (shape (1, 1, 1, 2, 3))", run, *[f(1, 1, 1, 2, 3)] * 3)
    refuses(ValueError, "k: shape (1, 2, 5, 4) expected for q (1, 2, 3, 4), got (1, 2, 5, 6)", run,
            q(2, 3, 4), f(2, 5, 6), f(2, 5, 6))
    refuses(ValueError, "k: shape (1, 4, 5, 8) expected for q (1, 4, 3, 8), got (1, 2, 5, 8)", run,
            q(4, 3, 8), f(2, 5, 8), f(2, 5, 8))
    refuses(ValueError, "v: shape (1, 2, 5, 4) expected for q (1, 2, 3, 4) and k (1, 2, 5, 4), "
            "got (1, 2, 6, 4)", run, q(2, 3, 4), f(2, 5, 4), f(2, 6, 4))
    refuses(ValueError, "bias: shape (3, 4) does not broadcast to (1, 2, 3, 5)", run, q(2, 3, 4),
            f(2, 5, 4), f(2, 5, 4), bias=f(3, 4))
    refuses(ValueError, "bias: shape (1, 1, 1, 1, 1) does not", run, q(2, 3, 4), f(2, 5, 4),
            f(2, 5, 4), bias=f(1, 1, 1, 1, 1))
    refuses(ValueError, "out: shape (2, 3, 4) expected, got (1, 2, 3, 4)", run, q(2, 3, 4),
            f(2, 5, 4), f(2, 5, 4), out=f(1, 2, 3, 4))
    refuses(ValueError, "key_lengths: shape (1,) expected, got (2,)", run, q(2, 3, 4),
            f(2, 5, 4), f(2, 5, 4), key_lengths=[1, 2])
    refuses(ValueError, "key_lengths: values from 0 to 5 expected, got 6 to 6", run, q(2, 3, 4),
            f(2, 5, 4), f(2, 5, 4), key_lengths=[6])
    refuses(ValueError, "past: -1 is out of range", run, *[f(2, 2)] * 3, past=-1)
    wide = [f(2, 513)] * 3  # the library's own limit
    error = refuses(ValueError, "q (1, 1, 2, 513)", run, *wide)
    assert isinstance(error, isobit.IsobitError) and error.status == isobit.Status.E_DIM


def test_options():
    refuses(ValueError, "activation: 'swish' is none of None, 'relu'", isobit.gemm, f(2, 2),
            f(2, 2), activation="swish")
    refuses(ValueError, "activation: ['relu'] is none of", isobit.linear, f(2, 2), f(2, 2),
            activation=["relu"])
    refuses(ValueError, "approximate: 'erf' is none of", isobit.gelu, f(2), approximate="erf")
    for eps in (-1.0, np.inf, np.nan):
        error = refuses(ValueError, "layernorm: ", isobit.layernorm, f(2, 2), eps=eps)
        assert error.status == isobit.Status.E_OPTION


# ---------------------------------------------------------------------------------- outputs


def test_outputs_that_cannot_be_written():
    frozen = f(2, 4)
    frozen.flags.writeable = False
    unaligned = np.zeros(33, np.uint8)[1:].view(np.float32).reshape(2, 4)
    columns, backwards = f(2, 8)[:, ::2], f(2, 4)[::-1]
    x, w = f(2, 4), f(4, 4)
    q = f(1, 2, 4)
    rows = "out: its rows must be contiguous and the same distance apart; shape (2, 4), strides"
    for call in (
        lambda out: isobit.gemm(x, w, out=out),
        lambda out: isobit.linear(x, w, out=out),
        lambda out: isobit.PackedLinear(w)(x, out=out),
        lambda out: isobit.softmax(x, out=out),
        lambda out: isobit.layernorm(x, out=out),
        lambda out: isobit.rmsnorm(x, out=out),
        lambda out: isobit.gelu(x, out=out),
    ):
        refuses(ValueError, "out: the array is read-only", call, frozen)
        refuses(ValueError, rows, call, columns)
        refuses(ValueError, rows, call, backwards)
        refuses(ValueError, rows, call, unaligned)
        refuses(ValueError, rows, call, np.asfortranarray(f(2, 4)))
    for out in (columns, backwards, unaligned):
        refuses(ValueError, "out: its last dimension must be contiguous; shape", isobit.attention,
                q, q, q, out=out[None])
    refuses(ValueError, "out: the array is read-only", isobit.attention, q, q, q, out=frozen[None])
    refuses(ValueError, "out: its rows", isobit.softmax, f(3, 2, 4),
            out=f(2, 3, 4).transpose(1, 0, 2))
    assert (frozen == 1).all() and not unaligned.any() and (columns == 1).all()


def test_outputs_that_overlap_an_input(rng):
    big = normal(rng, 8, 8)
    before = big.copy()
    w = normal(rng, 8, 8)
    q = big[None, :4]
    calls = [
        lambda: isobit.gemm(big, w, out=big),
        lambda: isobit.gemm(w, big, out=big),
        lambda: isobit.gemm(w[:4], w, out=big[1:5], residual=big[:4]),
        lambda: isobit.linear(big, w, out=big),
        lambda: isobit.PackedLinear(w)(big, out=big),
        lambda: isobit.softmax(big[:4], out=big[1:5]),
        lambda: isobit.layernorm(big[:4], out=big[1:5]),
        lambda: isobit.layernorm(w, big[0], out=big),
        lambda: isobit.layernorm(w, sum_out=big, out=big),
        lambda: isobit.rmsnorm(w[:4], residual=big[:4], out=big[2:6]),
        lambda: isobit.gelu(big[:4], out=big[1:5]),
        lambda: isobit.attention(q, q, q, out=big[None, 2:6]),
    ]
    for call in calls:
        error = refuses(ValueError, "overlap", call)
        assert isinstance(error, isobit.IsobitError) and error.status == isobit.Status.E_ALIAS
    assert same_bits(big, before)


# ------------------------------------------------------------------------------ the rest


def test_instruction_sets_and_threads():
    before = isobit.get_isa()
    error = refuses(ValueError, "'sse9'; this machine has: ", isobit.set_isa, "sse9")
    assert error.status == isobit.Status.E_ISA and isobit.get_isa() in str(error)
    refuses(TypeError, "name: a str or None expected, got int", isobit.set_isa, 2)
    refuses(ValueError, "'sc\\x00alar'", isobit.set_isa, "sc\0alar")
    assert isobit.get_isa() == before
    numerics = isobit.get_numerics()
    refuses(ValueError, "'nativ'; fixed or native", isobit.set_numerics, "nativ")
    refuses(TypeError, "name: a str or None expected, got int", isobit.set_numerics, 2)
    assert isobit.get_numerics() == numerics
    refuses(ValueError, "threads: -1 is out of range", isobit.set_num_threads, -1)
    refuses(TypeError, "threads: an int expected, got float", isobit.set_num_threads, 2.0)
    refuses(isobit.IsobitError, "set_num_threads: ", isobit.set_num_threads, 2**62)
    assert isobit.get_num_threads() == 1


def test_exceptions_can_be_pickled():
    error = refuses(ValueError, "sse9", isobit.set_isa, "sse9")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error)
    assert again.status is isobit.Status.E_ISA
    assert isobit.IsobitError("text", 999).status == 999
    assert issubclass(isobit.IsobitMemoryError, MemoryError)
    refuses(TypeError, "cannot be pickled", pickle.dumps, isobit.PackedLinear(f(2, 2)))
    refuses(TypeError, "cannot be pickled", pickle.dumps, isobit.Model.load(MODEL))
