"""Sends the grader messages larger than any notebook has."""
# verdict: ok
# %% triple
# points: 3
from IPython.display import display

for number in range(3):
    display({"text/plain": f"{number}" * 30_000_000}, raw=True)


def triple(x):
    return 3 * x
