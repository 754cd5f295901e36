"""In the order of the model: the first bucket is full when the backward pass is over."""
# caught by: test_assign
# %% assign
def assign(sizes, cap):
    buckets, room = [], 0
    for i in range(len(sizes)):
        if room <= 0:
            buckets.append([])
            room = cap
        buckets[-1].append(i)
        room -= sizes[i]
    return buckets
