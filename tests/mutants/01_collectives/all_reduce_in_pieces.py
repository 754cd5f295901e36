"""Ten numbers at a time: as many bytes, many times the messages."""


# caught by: test_all_reduce
# mistake: too_much_sent
# says: messages, where 6 would do
# %% all_reduce: changed
# -     reduce_scatter(tensor)
# -     all_gather(tensor)
# +     for piece in tensor.split(10 * dist.get_world_size()):
# +         reduce_scatter(piece)
# +         all_gather(piece)
