"""A list of all inputs of all calls."""
# caught by: test_checkpointed
# mistake: kept_in_memory
# says: bytes are still held that nobody needs
# %% checkpointed: changed
# - def checkpointed(function, *inputs):
# + SEEN = []
# +
# +
# + def checkpointed(function, *inputs):
# @@
#           ctx.save_for_backward(*inputs)
# +         SEEN.append([x.detach() for x in inputs])
