"""Stage 1 sends an all-reduce of the gradients and an all-gather of the parameters."""


# caught by: test_plan
# mistake: counted_twice
# %% plan: changed
# -     vectors = 3 if stage == 3 else 2
# +     vectors = 2 if stage in (0, 2) else 3
