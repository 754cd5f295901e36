"""Each rank keeps the parameter in 32 bits."""
# caught by: test_state_bytes
# mistake: part_missing
# %% state_bytes: changed
# -     optimizer = 12 / n if stage >= 1 else 12
# +     optimizer = 4 + 8 / n if stage >= 1 else 12
