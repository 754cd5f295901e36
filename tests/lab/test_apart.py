"""Calls of a student's function without ranks: the same at home and in the grader's sandbox."""

import base64
import importlib
import subprocess
import sys

import pytest

from ringzero.ranks import by_value
from ringzero_course.boxes import sandbox
from ringzero_course.lab import apart, handle, packed
from ringzero_course.lab.parameters import GraderFault, LabError

boxed = pytest.mark.skipif(sandbox.missing_ability() is not None, reason=f"{sandbox.missing_ability()}")


def in_a_box(name, function, *arguments):
    code = base64.b64encode(by_value.dumps(function)).decode()
    return apart._answer_of(name, packed.dumps({"code": code, "arguments": list(arguments)}))


def at_home(name, function, *arguments):
    before, apart.notebook_names = apart.notebook_names, lambda: {name: function}
    try:
        return apart.call(name, *arguments)
    finally:
        apart.notebook_names = before


@pytest.mark.parametrize("call", [at_home, pytest.param(in_a_box, marks=boxed)])
def test_plain_data_comes_back_as_it_is(call):
    source = "mine = lambda x: (x, [x, (1, None)], {1: x, (2, 3): 'text'}, isinstance(x, tuple))"
    exec(source, names := {"__name__": "__main__"})
    assert call("mine", names["mine"], (4, 5)) == ((4, 5), [(4, 5), (1, None)], {1: (4, 5), (2, 3): "text"}, True)


@pytest.mark.parametrize("call", [at_home, pytest.param(in_a_box, marks=boxed)])
def test_what_is_no_plain_data_is_an_error(call):
    exec("mine = lambda: object()", names := {"__name__": "__main__"})
    with pytest.raises(LabError, match="mine r"):
        call("mine", names["mine"])


@boxed
def test_a_box_that_does_not_start_is_no_fault_of_the_student(monkeypatch):
    monkeypatch.setattr(sandbox, "enclosed", lambda *_: ["false"])
    with pytest.raises(GraderFault, match="mine was not called"):
        in_a_box("mine", len, [])


def test_a_module_that_a_cell_wrote_travels_with_the_function(monkeypatch, tmp_path):
    (tmp_path / "my_ring.py").write_text("FACTOR = 3\ndef triple(x):\n    return FACTOR * x\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    triple = importlib.import_module("my_ring").triple
    code = handle.of(triple).code
    load = f"import pickle; print(pickle.loads({code!r})(2))"
    done = subprocess.run([sys.executable, "-c", load], cwd="/", capture_output=True, text=True, check=False)
    assert done.stdout == "6\n", done.stderr


CACHES = """
import functools
from torch.autograd.function import Function, once_differentiable

@functools.cache
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

class Kept:
    @functools.cached_property
    def value(self):
        return 1

class Doubled(Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient):
        return 2 * gradient

def mine():
    import torch
    x = torch.ones(1, requires_grad=True)
    Doubled.apply(x).sum().backward()
    return fibonacci(30) + Kept().value + x.grad.item()
"""


def test_caches_and_decorators_travel_with_the_function(monkeypatch, tmp_path):
    main = tmp_path / "main.py"
    main.write_text(f"{CACHES}\nfrom ringzero.ranks import by_value\nprint(repr(by_value.dumps(mine)))\n")
    made = subprocess.run([sys.executable, main], capture_output=True, text=True, check=True)
    load = f"import pickle; print(pickle.loads({made.stdout.strip()})())"
    done = subprocess.run([sys.executable, "-c", load], capture_output=True, text=True, check=False)
    assert done.stdout == "832043.0\n", done.stderr
