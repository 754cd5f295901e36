"""The gradients leave when the backward pass is over."""


# caught by: test_through_window
# mistake: no_overlap
# says: the device held 26,796 bytes more than before the pass, 7.2 layers; the window is 1
# %% through_window: changed
# -         leaving[i] = link.start_to_host(of_vector)
# -         del of_vector
# +         leaving[i] = of_vector
# @@
# -     return gradient, [leaving[i].wait() for i in range(len(vectors))]
# +     return gradient, [link.to_host(leaving[i]) for i in range(len(vectors))]
