"""Takes every message for one chunk, however many it carries."""
# caught by: test_count
# mistake: one_of_a_kind
# %% count
def count(schedule):
    return len(schedule.rounds), len(schedule.rounds) / schedule.chunks
