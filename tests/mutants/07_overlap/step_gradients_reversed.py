"""Returns the gradients in the order in which they came."""
# caught by: test_backward_pass
# says: the gradient of layer 0
# %% backward_pass: changed
# -     return gradients[::-1]
# +     return gradients
