"""Calls backward on the sum of the output."""
# caught by: test_checkpointed
# mistake: backward_wrong
# %% checkpointed: changed
# -         torch.autograd.backward(output, gradient)
# +         output.sum().backward()
