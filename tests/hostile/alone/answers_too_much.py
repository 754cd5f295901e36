"""Answers the tests' question for a function with more than they receive: to them, there is no answer."""
# verdict: limit
# says: TIME LIMIT in cell [3]
# %% double
import ringzero.lab.handle

exported = ringzero.lab.handle.exported
ringzero.lab.handle.exported = lambda name: "x" * 101_000_000 if name == "double" else exported(name)


def double(x):
    return 2 * x
