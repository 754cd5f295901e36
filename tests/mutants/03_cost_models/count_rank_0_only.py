"""Looks at rank 0 and takes it for the busiest."""
# caught by: test_count
# mistake: wrong_maximum
# %% count
def count(schedule):
    sent = sum(transfer.src == 0 for transfers in schedule.rounds for transfer in transfers)
    return len(schedule.rounds), sent / schedule.chunks
