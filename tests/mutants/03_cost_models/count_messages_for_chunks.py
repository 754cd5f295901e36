"""Takes every message for one chunk, however many it carries."""
# caught by: test_count
# %% count
def count(schedule):
    return len(schedule.rounds), len(schedule.rounds) / schedule.chunks
