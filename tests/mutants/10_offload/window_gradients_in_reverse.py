"""The list of gradients begins with the last layer's."""


# caught by: test_through_window
# mistake: order_of_layers
# says: gradients[0] has shape (754,), expected (720,)
# %% through_window: changed
# -     return gradient, [leaving[i].wait() for i in range(len(vectors))]
# +     return gradient, [leaving[i].wait() for i in reversed(range(len(vectors)))]
