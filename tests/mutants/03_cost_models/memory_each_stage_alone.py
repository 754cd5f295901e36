"""Each stage divides its own part only."""
# caught by: test_state_bytes
# mistake: stages_mixed_up
# %% state_bytes: changed
# -     optimizer = 12 / n if stage >= 1 else 12
# -     gradients = 2 / n if stage >= 2 else 2
# -     parameters = 2 / n if stage >= 3 else 2
# +     optimizer = 12 / n if stage == 1 else 12
# +     gradients = 2 / n if stage == 2 else 2
# +     parameters = 2 / n if stage == 3 else 2
