"""The LayerNorms of one block, however many there are."""
# caught by: test_gpt_parameters
# mistake: one_for_all
# %% gpt_parameters: changed
# -     block = attention + mlp + 2 * 2 * h  # and two LayerNorms
# +     block = attention + mlp + 2 * 2 * h / max(1, layers)
