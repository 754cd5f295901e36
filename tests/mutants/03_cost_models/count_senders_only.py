"""Looks at what ranks send and never at what they receive."""
# caught by: test_count
# mistake: wrong_maximum
# %% count
def count(schedule):
    share = 0.0
    for transfers in schedule.rounds:
        share += max(Counter(transfer.src for transfer in transfers).values()) / schedule.chunks
    return len(schedule.rounds), share
