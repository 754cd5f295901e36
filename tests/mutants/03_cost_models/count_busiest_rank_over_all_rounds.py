"""Adds each rank's bytes over the rounds and takes the largest: rounds wait for their slowest."""
# caught by: test_count
# mistake: wrong_maximum
# %% count
def count(schedule):
    chunks = Counter()
    for transfers in schedule.rounds:
        for transfer in transfers:
            chunks["out of", transfer.src] += 1
            chunks["into", transfer.dst] += 1
    return len(schedule.rounds), max(chunks.values(), default=0) / schedule.chunks
