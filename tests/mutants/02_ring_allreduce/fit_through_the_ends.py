"""A line through the smallest and the largest size, whatever lies between."""
# caught by: test_fit_alpha_beta
# mistake: rule_of_thumb
# says: by least squares they are below
# %% fit_alpha_beta
def fit_alpha_beta(sizes, seconds, world_size):
    (s0, t0), *_, (s1, t1) = sorted(zip(sizes, seconds))
    slope = (t1 - t0) / (s1 - s0)
    rounds = 2 * (world_size - 1)
    return (t0 - slope * s0) / rounds, slope * world_size / rounds
