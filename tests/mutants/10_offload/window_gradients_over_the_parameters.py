"""Writes the gradients over the parameters in host memory."""
# caught by: test_through_window
# mistake: changes_its_input
# says: the vectors in host memory were changed
# %% through_window: changed
# -     return gradient, [leaving[i].wait() for i in range(len(vectors))]
# +     for i in range(len(vectors)):
# +         vectors[i].copy_(leaving[i].wait())
# +     return gradient, vectors
