"""Algorithm bandwidth passed off as bus bandwidth: right for two ranks only."""
# caught by: test_bus_bandwidth
# mistake: part_missing
# %% bus_bandwidth
def bus_bandwidth(size, seconds, world_size):
    return size / seconds
