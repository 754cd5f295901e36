"""Returns an object that equals everything; and lists in lists, deeper than a reader goes."""
# verdict: student fault
# says: LabError
# %% double
# says: double raised TypeError
class Equal:
    __eq__ = __ge__ = __mul__ = __rmul__ = lambda self, other: True


def double(x):
    return Equal()
# %% triple
# says: triple left an answer that cannot be read
def triple(x):
    import os

    for number in range(3, 20):  # one of them takes the answer
        try:
            os.write(number, b'{"returned": ' + b"[" * 400_000 + b"]" * 400_000 + b"}")
        except OSError:
            pass
    os._exit(0)
