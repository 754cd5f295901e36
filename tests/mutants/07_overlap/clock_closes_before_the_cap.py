"""Closes a bucket before it would exceed the cap."""
# caught by: test_all_reduces
# mistake: one_off
# says: the begin of all-reduce 0
# %% all_reduces
def all_reduces(backwards, sizes, cap, alpha, beta):
    now = link_free = filling = 0
    found = []
    for layer in reversed(range(len(sizes))):
        if filling and filling + sizes[layer] > cap:
            link_free = max(now, link_free)
            found.append((link_free, link_free := link_free + alpha + beta * filling))
            filling = 0
        now += backwards[layer]
        filling += sizes[layer]
    begin = max(now, link_free)
    return [*found, (begin, begin + alpha + beta * filling)]
