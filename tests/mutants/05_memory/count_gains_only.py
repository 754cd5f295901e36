"""LayerNorms without biases."""
# caught by: test_gpt_parameters
# mistake: part_missing
# %% gpt_parameters: changed
# -     block = attention + mlp + 2 * 2 * h  # and two LayerNorms
# +     block = attention + mlp + 2 * h  # and two LayerNorms
# @@
# -     return (vocab + positions) * h + layers * block + 2 * h + head
# +     return (vocab + positions) * h + layers * block + h + head
