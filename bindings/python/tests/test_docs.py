"""The examples of the documentation."""

import doctest
import importlib

import pytest
from conftest import SAMPLE

pytest.importorskip("pyarrow")
pytest.importorskip("polars")


@pytest.mark.parametrize("module", ["", "._read", "._packets", "._events", ".tasks"])
def test_examples_of_docstrings(module, tmp_path):
    module = importlib.import_module("gannet" + module)
    names = {"SAMPLE": SAMPLE, "TMP": str(tmp_path)}
    results = doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0
