"""The inputs of the last call are in a global."""
# caught by: test_checkpointed
# mistake: state_between_steps
# says: the gradient of the input is off
# %% checkpointed: changed
# - def checkpointed(function, *inputs):
# + CALLS = []
# +
# +
# + def checkpointed(function, *inputs):
# @@
# -         ctx.save_for_backward(*inputs)
# -         return function(*inputs)
# +         CALLS.append(inputs)
# +         return function(*inputs)
# @@
# -         inputs = [x.detach().requires_grad_(x.requires_grad) for x in ctx.saved_tensors]
# +         inputs = [x.detach().requires_grad_() for x in CALLS.pop()]
