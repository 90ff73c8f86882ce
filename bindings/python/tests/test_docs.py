"""The examples of the documentation."""

import doctest
import importlib
import json

import pytest
from conftest import ROOT, SAMPLE

pytest.importorskip("pyarrow")
pytest.importorskip("polars")


@pytest.mark.parametrize("module", ["", "._read", "._packets", "._events", "._sql", ".tasks"])
def test_examples_of_docstrings(module, tmp_path):
    if module == "._sql":
        pytest.importorskip("duckdb")
    module = importlib.import_module("gannet" + module)
    names = {"SAMPLE": SAMPLE, "TMP": str(tmp_path)}
    results = doctest.testmod(module, extraglobs=names, optionflags=doctest.ELLIPSIS)
    assert results.attempted > 0
    assert results.failed == 0


def test_the_notebook_runs(monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.chdir(ROOT / "examples")
    notebook = json.loads((ROOT / "examples" / "python.ipynb").read_text())
    names = {}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
    assert names["conn"].height == 10
    assert names["logs"]["http"].height == 2
