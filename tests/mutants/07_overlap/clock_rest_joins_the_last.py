"""What is left at the end goes with the bucket before."""
# caught by: test_all_reduces
# mistake: last_left_out
# %% all_reduces
def all_reduces(backwards, sizes, cap, alpha, beta):
    buckets, filling, now = [], 0, 0
    for layer in reversed(range(len(sizes))):
        now += backwards[layer]
        filling += sizes[layer]
        if filling >= cap:
            buckets.append([now, filling])
            filling = 0
    if filling and buckets:
        buckets[-1][0] = now
        buckets[-1][1] += filling
    elif filling:
        buckets.append([now, filling])
    found, link_free = [], 0
    for full, size in buckets:
        begin = max(full, link_free)
        link_free = begin + alpha + beta * size
        found.append((begin, link_free))
    return found
