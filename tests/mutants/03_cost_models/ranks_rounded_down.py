"""Rounds down: one GPU too few."""
# caught by: test_least_ranks
# mistake: rounded_wrongly
# %% least_ranks
def least_ranks(params, stage, memory):
    divided = {0: 0, 1: 12, 2: 14, 3: 16}[stage] * params
    room = memory - (16 * params - divided)
    if divided == 0:
        return 1 if room >= 0 else None
    return max(1, floor(divided / room)) if room > 0 else None
