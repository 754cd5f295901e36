"""Calls the function and keeps everything."""
# caught by: test_checkpointed
# %% checkpointed
def checkpointed(function, *inputs):
    return function(*inputs)
