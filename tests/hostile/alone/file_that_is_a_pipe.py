"""A pipe, on which a reader would wait for ever, and another where a time should be; a name that is no text."""

# verdict: invalid submission
# says: not a file
# %% hand in
import os

path.unlink()
os.mkfifo(path)
os.mkfifo(path.parent / "another")
os.mkfifo(path.with_name("timestamp.txt"))
open(os.fsencode(path.parent) + b"/\xff\xfe.txt", "w").close()
