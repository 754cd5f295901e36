"""Gives the latency of the whole all-reduce as that of one message."""
# caught by: test_fit_alpha_beta
# mistake: per_piece_or_in_all
# %% fit_alpha_beta
def fit_alpha_beta(sizes, seconds, world_size):
    import numpy as np

    slope, start = np.polyfit(np.array(sizes) * 2 * (world_size - 1) / world_size, seconds, 1)
    return float(start), float(slope)
