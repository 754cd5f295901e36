"""all_reduce, meant to be torch's, is the function's own name: it calls itself."""
# caught by: test_all_reduce
# mistake: no_end
# says: all_reduce calls itself, without an end
# %% all_reduce
def all_reduce(tensor):
    if dist.get_world_size() > 1:
        all_reduce(tensor)
