"""The root of 6, whatever n is."""
# caught by: test_best_chunks
# mistake: shown_cases_only
# %% best_chunks: changed
# -     best = sqrt((n - 2) * size * beta / alpha)  # where the derivative in K is 0
# +     best = sqrt(6 * size * beta / alpha)  # where the derivative in K is 0
