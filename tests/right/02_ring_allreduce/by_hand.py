"""A line through the times, by the formulas for slope and intercept: plain least squares."""


# %% fit_alpha_beta
def fit_alpha_beta(sizes, seconds, world_size):
    mean_size, mean_time = sum(sizes) / len(sizes), sum(seconds) / len(seconds)
    above = sum((s - mean_size) * (t - mean_time) for s, t in zip(sizes, seconds))
    slope = above / sum((s - mean_size) ** 2 for s in sizes)
    rounds = 2 * (world_size - 1)
    return (mean_time - slope * mean_size) / rounds, slope * world_size / rounds


# %% ring_seconds
def ring_seconds(size, world_size, alpha, beta):
    seconds = 0.0
    for _ in range(world_size - 1):
        seconds += 2 * (alpha + size / world_size * beta)
    return seconds
