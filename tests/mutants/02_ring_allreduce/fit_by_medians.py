"""The median of the slopes: near the truth, and not least squares."""
# caught by: test_fit_alpha_beta
# mistake: one_of_a_kind
# says: by least squares they are below
# %% fit_alpha_beta
def fit_alpha_beta(sizes, seconds, world_size):
    from statistics import median
    points = sorted(zip(sizes, seconds))
    slope = median((u - t) / (b - a) for i, (a, t) in enumerate(points) for b, u in points[i + 1:])
    start = median(t - slope * s for s, t in points)
    rounds = 2 * (world_size - 1)
    return start / rounds, slope * world_size / rounds
