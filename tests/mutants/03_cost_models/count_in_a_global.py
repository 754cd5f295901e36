"""The share is added up in a global that no call sets back: right the first time."""
# caught by: test_count
# mistake: state_between_steps
# says: count assigns to the global total, which keeps its value between calls
# %% count
total = 0.0


def count(schedule):
    global total
    for transfers in schedule.rounds:
        chunks = Counter()
        for transfer in transfers:
            chunks["out of", transfer.src] += 1
            chunks["into", transfer.dst] += 1
        total += max(chunks.values()) / schedule.chunks
    return len(schedule.rounds), total
