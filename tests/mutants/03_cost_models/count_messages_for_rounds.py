"""Counts transfers where rounds were asked for."""
# caught by: test_count
# mistake: one_of_a_kind
# %% count
def count(schedule):
    share, messages = 0.0, 0
    for transfers in schedule.rounds:
        chunks = Counter()
        for transfer in transfers:
            chunks["out of", transfer.src] += 1
            chunks["into", transfer.dst] += 1
            messages += 1
        share += max(chunks.values()) / schedule.chunks
    return messages, share
