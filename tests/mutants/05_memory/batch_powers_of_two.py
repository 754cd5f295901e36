"""The largest power of two that fits."""
# caught by: test_largest_batch
# mistake: rounded_wrongly
# says: a batch of 5 needs 7.08104e+10 bytes and would fit
# %% largest_batch: changed
# -     return max(0, math.floor((memory - states) / one))  # all but the states grow with the batch
# +     fits = max(0, math.floor((memory - states) / one))
# +     return 2 ** (fits.bit_length() - 1) if fits else 0
