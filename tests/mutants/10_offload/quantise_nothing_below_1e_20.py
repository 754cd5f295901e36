"""Blocks with a scale below 1e-20 become zeros."""
# caught by: test_quantise
# mistake: rounded_wrongly
# %% quantise: changed
# -         if scales[i] > 0:
# +         if scales[i] > 1e-20:
