"""Of all ranks together."""
# caught by: test_state_bytes
# mistake: per_piece_or_in_all
# %% state_bytes: changed
# -     return params * (parameters + gradients + optimizer)
# +     return n * params * (parameters + gradients + optimizer)
