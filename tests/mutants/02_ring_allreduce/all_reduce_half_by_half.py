"""Sums one half of the buffer and then the other, in twice the rounds."""
# caught by: test_ring_all_reduce
# mistake: one_of_a_kind
# says: 12 messages, where 6 would do
# %% ring_all_reduce
def ring_all_reduce(tensor):
    for half in tensor.tensor_split(2):
        ring_reduce_scatter(half)
        ring_all_gather(half)
