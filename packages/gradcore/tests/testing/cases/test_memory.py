"""The references of the memory primitives."""

import numpy as np
import pytest

from gradcore.testing.cases.case import ALL_DTYPES, Host
from gradcore.testing.cases.memory import CASES, convert, full


def test_full() -> None:
    assert full((2, 1), 3, "int64").tolist() == [[3], [3]]
    assert full((), 0.1, "float32").dtype == np.float32
    assert full((0, 2), 1, "bool").shape == (0, 2)


@pytest.mark.parametrize("target", ALL_DTYPES)
def test_convert_is_what_c_does(target: str) -> None:
    x = np.array([[0.0, 1.9, 2.0], [7.5, 100.0, 255.0]])
    assert convert(x, target).tolist() == x.astype(target).tolist()


def test_convert_truncates_and_finds_nan_true() -> None:
    assert convert(np.array([-2.9, -0.5, 2.9]), "int32").tolist() == [-2, 0, 2]
    assert convert(np.array([np.nan, -0.0, 1e-30]), "bool").tolist() == [True, False, True]


def test_layouts_are_what_a_user_may_hold() -> None:
    made = {case.name: case.build("float32")[0] for case in CASES if case.operation == "asarray"}
    assert all(isinstance(one, Host) for one in made.values())
    assert made["fortran"].value.flags.f_contiguous
    assert made["reversed"].value.strides[0] < 0
    assert made["broadcast"].value.strides[0] == 0
    assert not made["read_only"].value.flags.writeable
    assert not made["strided"].value.flags.forc
