"""A pipe, on which a reader would wait for ever."""

# verdict: invalid submission
# says: not a file
# %% hand in
import os

path.unlink()
os.mkfifo(path)
os.mkfifo(path.parent / "another")
