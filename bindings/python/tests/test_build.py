"""The module's libraries are those of the command."""

import re

import pytest
from conftest import ROOT


def versions(lock):
    found = re.findall(r'name = "([^"]+)"\nversion = "([^"]+)"', lock.read_text())
    by_name = {}
    for name, version in found:
        by_name.setdefault(name, set()).add(version)
    return by_name


def test_versions_of_libraries_are_those_of_the_workspace():
    ours = versions(ROOT / "bindings" / "python" / "Cargo.lock")
    theirs = versions(ROOT / "Cargo.lock")
    differ = {
        name: (sorted(v), sorted(theirs[name]))
        for name, v in ours.items()
        if name in theirs and not v <= theirs[name]
    }
    assert not differ
