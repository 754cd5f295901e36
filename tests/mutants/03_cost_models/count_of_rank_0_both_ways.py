"""Rank 0's link, out and in, taken for the busiest."""
# caught by: test_count
# mistake: wrong_maximum
# %% count
def count(schedule):
    share = 0.0
    for transfers in schedule.rounds:
        out = sum(transfer.src == 0 for transfer in transfers)
        into = sum(transfer.dst == 0 for transfer in transfers)
        share += max(out, into) / schedule.chunks
    return len(schedule.rounds), share
