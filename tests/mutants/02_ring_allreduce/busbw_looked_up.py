"""The factors of 2, 4 and 8 ranks, from a table."""
# caught by: test_bus_bandwidth
# mistake: some_ranks_only
# %% bus_bandwidth
def bus_bandwidth(size, seconds, world_size):
    return size / seconds * {2: 1.0, 4: 1.5, 8: 1.75}.get(world_size, 2.0)
