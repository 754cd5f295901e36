"""Puts a pipe in place of its connection file, on which a reader would wait for ever, and leaves a deep closed folder."""
# verdict: ok
# %% double
# points: 2
import os
import ipykernel

file = ipykernel.get_connection_file()
os.unlink(file)
os.mkfifo(file)


def double(x):
    return 2 * x
# %% triple
# points: 3
os.chdir(os.path.dirname(file))
for _ in range(1500):  # deeper than Python walks
    os.mkdir("deeper")
    os.chdir("deeper")
os.chmod(".", 0)
os.chdir("/tmp")


def triple(x):
    return 3 * x
