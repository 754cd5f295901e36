"""The output is kept too, and its graph does not matter."""
# caught by: test_checkpointed
# mistake: kept_in_memory
# says: bytes are held after the forward pass, expected 24,576
# %% checkpointed: changed
# -         return function(*inputs)
# -
# -     @staticmethod
# +         ctx.more = [x.clone() for x in inputs]
# +         return function(*inputs)
# +
# +     @staticmethod
