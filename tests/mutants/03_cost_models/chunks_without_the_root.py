"""What is under the root."""
# caught by: test_best_chunks
# mistake: part_missing
# %% best_chunks: changed
# -     best = sqrt((n - 2) * size * beta / alpha)  # where the derivative in K is 0
# +     best = (n - 2) * size * beta / alpha  # where the derivative in K is 0
