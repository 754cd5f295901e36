"""Returns nothing."""
# caught by: test_backward_pass
# mistake: wrong_kind
# says: rank 0 returned None, not a list of 6 gradients
# %% backward_pass: changed
# -     return gradients[::-1]
