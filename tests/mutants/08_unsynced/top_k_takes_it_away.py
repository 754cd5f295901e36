"""What was sent is set to 0 in the vector that was given."""


# caught by: test_top_k_mean
# mistake: changes_its_input
# says: rank 0 changed the vector it was given
# %% top_k_mean: changed
# -     mine[indices] = values
# +     mine[indices] = values
# +     vector[indices] = 0
