"""A line through the first and the last point: right only without noise, and in this order."""
# caught by: test_fit_alpha_beta
# mistake: rule_of_thumb
# %% fit_alpha_beta
def fit_alpha_beta(sizes, seconds, world_size):
    slope = (seconds[1] - seconds[0]) / (sizes[1] - sizes[0])
    start = seconds[0] - slope * sizes[0]
    rounds = 2 * (world_size - 1)
    return start / rounds, slope * world_size / rounds
