"""torch_agrees: hold a case's float64 reference against PyTorch. Skips where PyTorch is not installed."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest

from gradcore.testing import assert_close
from gradcore.testing.cases import Case
from gradcore.testing.cases.case import host
from gradcore.testing.check import flat


@pytest.fixture
def torch_agrees() -> Callable[..., None]:
    """A function (cases, torch function of the same arguments); arrays come as tensors."""
    torch = pytest.importorskip("torch")

    def to_torch(argument: Any) -> Any:
        if isinstance(argument, list):
            return [to_torch(one) for one in argument]
        return torch.from_numpy(argument.copy()) if isinstance(argument, np.ndarray) else argument

    def compare(cases: Iterable[Case], function: Callable[..., Any], *, skip: Iterable[str] = ()) -> None:
        left = [case for case in cases if case.name not in set(skip)]
        assert left
        for case in left:
            dtype = "float64" if "float64" in case.dtypes else case.dtypes[-1]
            arguments = [host(one) for one in case.build(dtype)]
            wanted = flat(function(*map(to_torch, arguments)))
            found = flat(case.reference(*arguments))
            for i, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
                rtol, atol = case.tolerance.bounds("float64")
                theirs = theirs.detach().numpy()
                assert_close(ours, theirs, rtol=rtol, atol=10 * atol, dtype=False, what=f"{case.id}, result {i}")

    return compare
