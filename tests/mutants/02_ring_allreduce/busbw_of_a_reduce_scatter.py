"""(N-1)/N, the factor of half the work."""
# caught by: test_bus_bandwidth
# mistake: part_missing
# %% bus_bandwidth
def bus_bandwidth(size, seconds, world_size):
    return size / seconds * (world_size - 1) / world_size
