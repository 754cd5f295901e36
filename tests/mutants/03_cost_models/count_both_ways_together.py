"""Adds what a rank sends and what it receives: a link carries both at once."""
# caught by: test_count
# mistake: wrong_maximum
# %% count
def count(schedule):
    share = 0.0
    for transfers in schedule.rounds:
        chunks = Counter()
        for transfer in transfers:
            chunks[transfer.src] += 1
            chunks[transfer.dst] += 1
        share += max(chunks.values()) / 2 / schedule.chunks
    return len(schedule.rounds), share
