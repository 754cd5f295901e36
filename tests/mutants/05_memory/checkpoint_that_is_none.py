"""Calls the function and keeps everything."""
# caught by: test_checkpointed
# mistake: kept_in_memory
# says: in 1 call the function ran 1 times, expected twice in each
# %% checkpointed
def checkpointed(function, *inputs):
    return function(*inputs)
