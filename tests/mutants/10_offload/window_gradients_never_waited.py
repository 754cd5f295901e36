"""Takes the gradients without waiting for their copies."""


# caught by: test_through_window
# mistake: never_waits
# says: nobody waited for the copy of the gradient of layer 6
# %% through_window: changed
# -     return gradient, [leaving[i].wait() for i in range(len(vectors))]
# +     return gradient, [leaving[i]._made for i in range(len(vectors))]
