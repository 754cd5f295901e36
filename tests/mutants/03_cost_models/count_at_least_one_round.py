"""One round at least, also where nothing is sent."""
# caught by: test_count
# mistake: special_case
# says: rounds is 1, expected 0
# %% count: changed
# -     return len(schedule.rounds), share
# +     return max(1, len(schedule.rounds)), share
