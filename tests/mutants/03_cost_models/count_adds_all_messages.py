"""Adds up what all ranks send, though they send at the same time."""
# caught by: test_count
# mistake: counted_twice
# %% count
def count(schedule):
    return len(schedule.rounds), sum(len(list(transfers)) for transfers in schedule.rounds) / schedule.chunks
