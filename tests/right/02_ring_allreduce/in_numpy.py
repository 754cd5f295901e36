"""Formulas with numpy, and a weighted least-squares fit by ``lstsq``."""


# %% ring_seconds
def ring_seconds(size, world_size, alpha, beta):
    import numpy as np

    return float(np.float64(2 * world_size - 2) * (np.float64(alpha) + size * beta / world_size))


# %% bus_bandwidth
def bus_bandwidth(size, seconds, world_size):
    algorithm_bandwidth = size / seconds
    return algorithm_bandwidth * (2 - 2 / world_size)


# %% fit_alpha_beta
def fit_alpha_beta(sizes, seconds, world_size):
    import numpy as np

    t, size = np.array(seconds), np.array(sizes, dtype=float)
    rounds = 2 * (world_size - 1)
    a = np.stack([np.full(len(t), rounds), rounds * size / world_size * 1e-6], axis=1) / t[:, None]
    alpha, beta = np.linalg.lstsq(a, np.ones(len(t)), rcond=None)[0]
    return alpha, beta * 1e-6
