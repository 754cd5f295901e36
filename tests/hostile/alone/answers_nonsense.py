"""Answers the tests' question for a function with something that is none: deep, of wrong types, or code to run."""

# verdict: tampering
# says: double cannot be had
# %% double
import ringzero_course.lab.handle

answers = iter(["7", "[" * 100_000, '{"code": 7}', "__import__('os').system('touch /tmp/hostile-escaped')"] * 9)
ringzero_course.lab.handle.exported = lambda name: next(answers)


def double(x):
    return 2 * x


# %% triple
# points: 0
def triple(x):
    return 3 * x
