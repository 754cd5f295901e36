"""The inputs of the second run ask for no gradients."""
# caught by: test_checkpointed
# mistake: without_gradient
# %% checkpointed: changed
# -         inputs = [x.detach().requires_grad_(x.requires_grad) for x in ctx.saved_tensors]
# +         inputs = [x.detach() for x in ctx.saved_tensors]
