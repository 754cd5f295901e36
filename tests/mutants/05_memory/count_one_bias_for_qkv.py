"""One bias of h for Q, K and V."""
# caught by: test_gpt_parameters
# mistake: part_missing
# %% gpt_parameters: changed
# -     attention = (h * 3 * h + 3 * h) + (h * h + h)
# +     attention = (h * 3 * h + h) + (h * h + h)
