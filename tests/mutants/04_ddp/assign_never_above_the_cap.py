"""Closes a bucket before the parameter that would make it too large."""
# caught by: test_assign
# mistake: one_off
# %% assign
def assign(sizes, cap):
    buckets = []
    for i in reversed(range(len(sizes))):
        if not buckets or sum(sizes[j] for j in buckets[-1]) + sizes[i] > cap:
            buckets.append([])
        buckets[-1].append(i)
    return buckets
