"""A chunk that a rank sends to two others in one round is counted once."""
# caught by: test_count
# mistake: counted_twice
# %% count
def count(schedule):
    """``(rounds, share)``: the number of rounds, and the busiest link's part of the buffer, summed over rounds."""
    share = 0.0
    for transfers in schedule.rounds:
        chunks = {(way, rank, t.chunk) for t in transfers for way, rank in (("out of", t.src), ("into", t.dst))}
        links = Counter((way, rank) for way, rank, _ in chunks)
        share += max(links.values()) / schedule.chunks
    return len(schedule.rounds), share
