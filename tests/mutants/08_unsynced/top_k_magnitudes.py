"""Magnitudes are sent: the signs are lost."""


# caught by: test_top_k_mean
# mistake: magnitude
# says: on rank 0 mine has magnitudes: the signs are lost
# %% top_k_mean: changed
# -     values = vector[indices]
# +     values = vector.abs()[indices]
