"""The bucket that is not full at the end is lost."""
# caught by: test_assign
# mistake: last_left_out
# %% assign
def assign(sizes, cap):
    buckets, members = [], []
    for i in reversed(range(len(sizes))):
        members.append(i)
        if sum(sizes[j] for j in members) >= cap:
            buckets.append(members)
            members = []
    return buckets
