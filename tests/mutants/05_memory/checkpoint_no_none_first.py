"""Returns the inputs' gradients and no None for the function."""
# caught by: test_checkpointed
# mistake: backward_wrong
# %% checkpointed: changed
# -         return None, *[x.grad for x in inputs]
# +         return tuple(x.grad for x in inputs)
