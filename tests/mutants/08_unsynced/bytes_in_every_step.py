"""Local SGD as if it averaged in every step."""


# caught by: test_bytes_a_step
# mistake: other_algorithms_cost
# says: the number of bytes is 3840, expected 384 (10 times it)
# %% bytes_a_step: changed
# -         "local SGD": whole / h,
# +         "local SGD": whole,
