"""Wrong solutions of lab 03_cost_models, one of each kind of mistake. ``ringzero_course.authoring.submission`` says how they are written."""

# ==== count_at_least_one_round
"""One round at least, also where nothing is sent."""
# caught by: test_count
# says: rounds is 1, expected 0
# %% count: changed
# -     return len(schedule.rounds), share
# +     return max(1, len(schedule.rounds)), share

# ==== count_in_a_global
"""The share is added up in a global that no call sets back: right the first time."""
# caught by: test_count
# says: count assigns to the global total, which keeps its value between calls
# %% count
total = 0.0


def count(schedule):
    global total
    for transfers in schedule.rounds:
        chunks = Counter()
        for transfer in transfers:
            chunks["out of", transfer.src] += 1
            chunks["into", transfer.dst] += 1
        total += max(chunks.values()) / schedule.chunks
    return len(schedule.rounds), total

# ==== ring_by_the_library
"""Asks the library."""
# caught by: test_ring_cost
# says: is not to be used here
# %% ring_cost
def ring_cost(n):
    from ringzero.costs.page.coefficients import COEFFICIENTS

    return COEFFICIENTS["all_reduce"]["ring"](n)[:2]

# ==== ring_n_rounds
"""N rounds each."""
# caught by: test_ring_cost
# %% ring_cost: changed
# -     return 2 * (n - 1), 2 * (n - 1) / n
# +     return 2 * n - 1, 2 * (n - 1) / n

# ==== ring_of_a_power_of_two
"""2 - 2 / 2**k for the share, with the logarithm rounded."""
# caught by: test_ring_cost
# %% ring_cost
def ring_cost(n):
    return 2 * (n - 1), 2 - 2 / 2 ** round(n ** 0.5 if n > 4 else n / 2)

# ==== tree_by_counting
"""Builds the schedule and counts it: too long for many ranks."""
# caught by: test_tree_cost
# %% tree_cost
def tree_cost(n):
    return count(ALGORITHMS["all_reduce"]["binomial"](n))

# ==== tree_halves
"""Half the buffer in each round."""
# caught by: test_tree_cost
# %% tree_cost: changed
# -     return 2 * depth, 2.0 * depth
# +     return 2 * depth, 1.0 * depth

# ==== tree_looked_up
"""The depths of a few trees, from a table."""
# caught by: test_tree_cost
# %% tree_cost
def tree_cost(n):
    depth = {1: 0, 2: 1, 3: 2, 4: 2, 5: 3, 6: 3, 8: 3, 64: 6, 65: 7, 1000: 10, 1024: 10}.get(n, 3)
    return 2 * depth, 2.0 * depth

# ==== doubling_of_the_rings_bytes
"""The butterfly's rounds with the ring's bytes: no algorithm does that in log2 N rounds."""
# caught by: test_doubling_cost
# %% doubling_cost
def doubling_cost(n):
    rounds = n.bit_length() - 1 + (2 if n & (n - 1) else 0)
    return rounds, 2 * (n - 1) / n

# ==== doubling_one_round_for_the_rest
"""The rest is added, and never told the result."""
# caught by: test_doubling_cost
# %% doubling_cost: changed
# -         rounds += 2
# +         rounds += 1

# ==== halving_by_the_library
"""Asks the library."""
# caught by: test_halving_doubling_cost
# %% halving_doubling_cost
from ringzero.costs.page.coefficients import COEFFICIENTS


def halving_doubling_cost(n):
    return COEFFICIENTS["all_reduce"]["rabenseifner"](n)[:2]

# ==== halving_rest_once
"""The rest's buffers once."""
# caught by: test_halving_doubling_cost
# %% halving_doubling_cost: changed
# -     return 2 * steps + rest, 2 * (core - 1) / core + rest
# +     return 2 * steps + rest, 2 * (core - 1) / core + rest / 2

# ==== crossover_in_shares
"""Forgets α over β."""
# caught by: test_crossover
# %% crossover: changed
# -     return more_rounds * alpha / (less_share * beta) or None  # where alpha is 0 they meet at 0 bytes only
# +     return more_rounds / less_share or None  # where alpha is 0 they meet at 0 bytes only

# ==== crossover_in_whole_bytes
"""Rounds to whole bytes."""
# caught by: test_crossover
# %% crossover: changed
# -     return more_rounds * alpha / (less_share * beta) or None  # where alpha is 0 they meet at 0 bytes only
# +     return round(more_rounds * alpha / (less_share * beta)) or None  # where alpha is 0 they meet at 0 bytes only

# ==== crossover_of_equal_shares
"""Divides by the difference of the shares, also where there is none."""
# caught by: test_crossover
# says: raised ZeroDivisionError
# %% crossover: changed
# -     if more_rounds * less_share <= 0:
# +     if more_rounds * less_share < 0:

# ==== crossover_sum_of_shares
"""Adds the shares."""
# caught by: test_crossover
# %% crossover: changed
# -     return more_rounds * alpha / (less_share * beta) or None  # where alpha is 0 they meet at 0 bytes only
# +     return more_rounds * alpha / (abs(first[1] + second[1]) * beta) or None  # where alpha is 0 they meet at 0 bytes only

# ==== chunks_alpha_and_beta_swapped
"""Many pieces where latency is large."""
# caught by: test_best_chunks
# %% best_chunks
def best_chunks(n, size, alpha, beta):
    return max(1, round(sqrt((n - 2) * alpha / (size * beta)))) if size else 1

# ==== chunks_none_at_all
"""Zero pieces, where one is the least there is."""
# caught by: test_best_chunks
# %% best_chunks
def best_chunks(n, size, alpha, beta):
    return floor(sqrt((n - 2) * size * beta / alpha))

# ==== busbw_by_the_library
"""Asks the library, which the notebook imports."""
# caught by: test_bandwidths
# %% bandwidths
def bandwidths(line, collective, n):
    size, elapsed = float(line.split()[0]), 1e-6 * float(line.split()[5])
    both = alpha_beta.algorithm_bandwidth(size, elapsed), alpha_beta.bus_bandwidth(collective, n, size, elapsed)
    return tuple(each / 1e9 for each in both)

# ==== busbw_in_bits
"""Gbit/s, as network cards are sold, where GB/s were asked for."""
# caught by: test_bandwidths
# says: (8 times it: Gbit/s, not GB/s?)
# %% bandwidths: changed
# -     algbw = size / (microseconds * 1e-6) / 1e9
# +     algbw = 8 * size / (microseconds * 1e-6) / 1e9

# ==== busbw_over_the_factor
"""Divides by the factor."""
# caught by: test_bandwidths
# %% bandwidths: changed
# -     return algbw, algbw * factor
# +     return algbw, algbw / (factor or 1)

# ==== busbw_size_from_the_count
"""Takes the size as four times the count of elements."""
# caught by: test_bandwidths
# says: algbw is
# %% bandwidths: changed
# -     size, microseconds = float(columns[0]), float(columns[5])
# +     size, microseconds = 4 * float(columns[1]), float(columns[5])

# ==== busbw_whole_microseconds
"""Whole microseconds."""
# caught by: test_bandwidths
# %% bandwidths: changed
# -     size, microseconds = float(columns[0]), float(columns[5])
# +     size, microseconds = float(columns[0]), int(float(columns[5]))

# ==== memory_by_the_library
"""Asks the library."""
# caught by: test_state_bytes
# %% state_bytes
def state_bytes(params, stage, n):
    from ringzero.costs.page import memory

    return memory.model_state_bytes(params, stage, n)

# ==== memory_fp32_copy_whole
"""Each rank keeps the parameter in 32 bits."""
# caught by: test_state_bytes
# %% state_bytes: changed
# -     optimizer = 12 / n if stage >= 1 else 12
# +     optimizer = 4 + 8 / n if stage >= 1 else 12

# ==== memory_rounded_down
"""Divides by // and loses parts of a byte."""
# caught by: test_state_bytes
# says: the memory in bytes is
# %% state_bytes: changed
# -     optimizer = 12 / n if stage >= 1 else 12
# -     gradients = 2 / n if stage >= 2 else 2
# -     parameters = 2 / n if stage >= 3 else 2
# -     return params * (parameters + gradients + optimizer)
# +     optimizer = 12 * params // n if stage >= 1 else 12 * params
# +     gradients = 2 * params // n if stage >= 2 else 2 * params
# +     parameters = 2 * params // n if stage >= 3 else 2 * params
# +     return parameters + gradients + optimizer

# ==== ranks_as_if_all_were_divided
"""16 bytes over the memory of all GPUs, whatever the stage."""
# caught by: test_least_ranks
# %% least_ranks
def least_ranks(params, stage, memory):
    return ceil(16 * params / memory)

# ==== ranks_by_whole_bytes
"""Divides by //, so a part of a byte too much still fits."""
# caught by: test_least_ranks
# says: returned 7, expected 8
# %% least_ranks: changed
# -     return ceil(divided / room) if room > 0 else None
# +     return next((n for n in range(1, 10_000_000) if divided // n <= room), None) if room > 0 else None

# ==== ranks_never_none
"""Tries more and more ranks, for ever."""
# caught by: test_least_ranks
# %% least_ranks
def least_ranks(params, stage, memory):
    n = 1
    while state_bytes(params, stage, n) > memory:
        n += 1
    return n

# ==== ranks_up_to_a_thousand
"""Tries 1 to 1,000."""
# caught by: test_least_ranks
# says: stage 1: returned None, expected
# %% least_ranks
def least_ranks(params, stage, memory):
    return next((n for n in range(1, 1001) if state_bytes(params, stage, n) <= memory), None)

# ==== ranks_none_at_stage_0
"""Stage 0 never fits."""
# caught by: test_least_ranks
# %% least_ranks: changed
# -         return 1 if room >= 0 else None
# +         return None
