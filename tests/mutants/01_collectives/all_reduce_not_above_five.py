"""On more than five ranks it gives up."""
# caught by: test_all_reduce
# mistake: some_ranks_only
# %% all_reduce: changed
# +     if dist.get_world_size() > 5:
# +         raise NotImplementedError
#       reduce_scatter(tensor)
