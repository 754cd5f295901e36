"""Leaves the positions out."""
# caught by: test_gpt_parameters
# mistake: part_missing
# %% gpt_parameters: changed
# -     return (vocab + positions) * h + layers * block + 2 * h + head
# +     return vocab * h + layers * block + 2 * h + head
