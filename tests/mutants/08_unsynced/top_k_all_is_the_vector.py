"""Where k is as large as the vector, mine is the vector that was given."""


# caught by: test_top_k_mean
# mistake: copy_or_view
# says: is not two new vectors
# %% top_k_mean: changed
# -     mine[indices] = values
# +     mine[indices] = values
# +     mine = vector if k >= vector.numel() else mine
