"""Returns the gradients in the order in which they came."""
# caught by: test_backward_pass
# mistake: order_of_layers
# says: that is the gradient of layer 5
# %% backward_pass: changed
# -     return gradients[::-1]
# +     return gradients
