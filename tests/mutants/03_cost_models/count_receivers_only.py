"""Looks at what ranks receive and never at what they send."""
# caught by: test_count
# mistake: wrong_maximum
# %% count
def count(schedule):
    share = 0.0
    for transfers in schedule.rounds:
        share += max(Counter(transfer.dst for transfer in transfers).values()) / schedule.chunks
    return len(schedule.rounds), share
