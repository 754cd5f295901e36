"""A single rank gets the tensor itself back, not a new one."""
# caught by: test_all_to_all
# mistake: copy_or_view
# %% all_to_all: changed
#       rank, n, chunks = dist.get_rank(), dist.get_world_size(), chunks_of(tensor)
# +     if n == 1:
# +         return tensor
