"""Divides bytes by seconds and calls the latency zero."""
# caught by: test_fit_alpha_beta
# mistake: part_missing
# %% fit_alpha_beta
def fit_alpha_beta(sizes, seconds, world_size):
    sent = [2 * (world_size - 1) / world_size * size for size in sizes]
    return 0.0, sum(t / s for t, s in zip(seconds, sent)) / len(sent)
