"""Takes a layer to be complete when its first parameter has its gradient."""


# caught by: test_Zero2
# mistake: too_early
# says: the shard of the gradient of layers.1 is all zeros
# %% Zero2: changed
# -         if any(p.grad is None for p in flat.parameters):
# +         if flat.parameters[0].grad is None:
