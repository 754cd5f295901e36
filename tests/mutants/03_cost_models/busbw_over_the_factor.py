"""Divides by the factor."""
# caught by: test_bandwidths
# mistake: reversed
# %% bandwidths: changed
# -     return algbw, algbw * factor
# +     return algbw, algbw / (factor or 1)
