"""N/(N-1) for (N-1)/N."""
# caught by: test_least_tokens
# mistake: special_case
# %% least_tokens: changed
# -     sent = 2 * element * (n - 1) / n  # bytes a parameter
# +     sent = 2 * element * n / max(n - 1, 1)  # bytes a parameter
