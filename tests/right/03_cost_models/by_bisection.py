"""Finds by trying where others solve an equation."""


# %% crossover
def crossover(first, second, alpha, beta):
    def gap(size):
        return seconds(first, size, alpha, beta) - seconds(second, size, alpha, beta)

    low, high = 1e-12, 1e30
    if gap(low) * gap(high) >= 0 or alpha == 0:
        return None
    for _ in range(400):
        middle = (low * high) ** 0.5
        if gap(low) * gap(middle) <= 0:
            high = middle
        else:
            low = middle
    return high


# %% best_chunks
def best_chunks(n, size, alpha, beta):
    def t(k):
        return (n - 2 + k) * alpha + (n - 2) * size * beta / k + size * beta

    low, high = 1, 10**9
    while low < high:
        middle = (low + high) // 2
        if t(middle) <= t(middle + 1):
            high = middle
        else:
            low = middle + 1
    return low


# %% least_ranks
def least_ranks(params, stage, memory):
    for n in (1, 10**15):
        if state_bytes(params, stage, n) <= memory:
            break
    else:
        return None
    low, high = 0, n
    while high - low > 1:
        n = (low + high) // 2
        low, high = (low, n) if state_bytes(params, stage, n) <= memory else (n, high)
    return high
