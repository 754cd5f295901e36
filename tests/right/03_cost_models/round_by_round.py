"""Adds up the rounds one by one, as on paper."""


# %% count
def count(schedule):
    rounds, share = 0, 0
    for one_round in schedule.rounds:
        out, into = [0] * schedule.world_size, [0] * schedule.world_size
        for src, dst, _, _ in one_round:
            out[src] += 1
            into[dst] += 1
        rounds = rounds + 1
        share = share + max(out + into) / schedule.chunks
    return (rounds, share)


# %% ring_cost
def ring_cost(n):
    rounds, share = 0, 0.0
    for phase in ("reduce-scatter", "all-gather"):
        for _ in range(n - 1):
            rounds += 1
            share += 1 / n
    return rounds, share


# %% tree_cost
def tree_cost(n):
    have, rounds = 1, 0
    while have < n:
        have, rounds = 2 * have, rounds + 1
    return rounds + rounds, float(rounds + rounds)


# %% doubling_cost
def doubling_cost(n):
    core, rounds = 1, 0
    while 2 * core <= n:
        core *= 2
        rounds += 1
    if core < n:
        rounds += 1 + 1
    return rounds, rounds


# %% halving_doubling_cost
def halving_doubling_cost(n):
    core, steps, share = 1, 0, 0.0
    while 2 * core <= n:
        core *= 2
        steps += 1
    part = 1.0
    for _ in range(steps):
        part /= 2
        share += 2 * part
    if core != n:
        return 2 * steps + 2, share + 2
    return 2 * steps, share


# %% best_chunks
def best_chunks(n, size, alpha, beta):
    seconds = lambda k: (n - 2 + k) * (alpha + size / k * beta)
    k = 1
    while seconds(k + 1) < seconds(k):
        k += 1
    return k


# %% least_ranks
def least_ranks(params, stage, memory):
    whole = {0: 16, 1: 4, 2: 2, 3: 0}[stage] * params
    if state_bytes(params, stage, 1) <= memory:
        return 1
    if whole >= memory or stage == 0:
        return None
    n = 1
    while state_bytes(params, stage, n) > memory:
        n *= 2
    low, high = n // 2, n
    while high - low > 1:
        middle = (low + high) // 2
        if state_bytes(params, stage, middle) <= memory:
            high = middle
        else:
            low = middle
    return high
