"""Answers the tests' question for a function with more than they receive: to them, there is no answer."""
# verdict: limit
# says: cell [3]: double cannot be had from the notebook's kernel: it did not answer in 30 s
# %% double
import ringzero_course.lab.handle

exported = ringzero_course.lab.handle.exported
ringzero_course.lab.handle.exported = lambda name: "x" * 101_000_000 if name == "double" else exported(name)


def double(x):
    return 2 * x
