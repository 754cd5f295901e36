"""A bucket that is exactly full gets one more parameter."""
# caught by: test_assign
# mistake: one_off
# %% assign
def assign(sizes, cap):
    buckets, size = [[]], 0
    for i in reversed(range(len(sizes))):
        if size > cap:
            buckets.append([])
            size = 0
        buckets[-1].append(i)
        size += sizes[i]
    return buckets
