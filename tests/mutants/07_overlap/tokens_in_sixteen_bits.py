"""Two bytes an element."""
# caught by: test_least_tokens
# mistake: type_fixed
# %% least_tokens: changed
# -     sent = 2 * element * (n - 1) / n  # bytes a parameter
# +     sent = 2 * 2 * (n - 1) / n  # bytes a parameter
