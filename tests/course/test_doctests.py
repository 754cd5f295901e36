"""Every example in a docstring of both packages gives what it says."""

import doctest
import importlib
from pathlib import Path

import pytest

import ringzero

SRC = Path(ringzero.__file__).parents[1]
WITH_EXAMPLES = [path for path in sorted(SRC.glob("ringzero*/**/*.py")) if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", WITH_EXAMPLES, ids=lambda path: str(path.relative_to(SRC)))
def test_examples_in_docstrings(path):
    name = ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")
    assert doctest.testmod(importlib.import_module(name)).failed == 0
