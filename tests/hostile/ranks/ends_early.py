"""A rank that leaves with status 0, and a link where that is noted; one that crashes, one that raises."""


# verdict: student fault
# %% first
# says: rank 1
def first(tensor):
    if dist.get_rank() == 1:
        import os

        os.symlink("HOST_FOLDER/made-by-a-student", os.path.dirname(os.readlink("/proc/self/fd/1")) + "/1.gone")
        os._exit(0)
    dist.all_reduce(tensor)
    return tensor


# %% second
# says: SIGSEGV
def second(tensor):
    if dist.get_rank() == 1:
        import ctypes

        ctypes.string_at(0)
    dist.all_reduce(tensor)
    return tensor


# %% third
# says: rank 1 raised KeyError
# says: {}["k"]
def third(tensor):
    if dist.get_rank() == 1:
        {}["k"]
    dist.all_reduce(tensor)
    return tensor
