"""All inputs get the first one's gradient."""
# caught by: test_checkpointed
# mistake: backward_wrong
# %% checkpointed: changed
# -         return None, *[x.grad for x in inputs]
# +         return None, *[inputs[0].grad for _ in inputs]
