"""Goes module by module: what two modules share is sent twice."""


# caught by: test_start_alike
# mistake: counted_twice
# says: called broadcast on 196 bytes 2 times, expected 1
# %% start_alike: changed
# -     for tensor in [*module.parameters(), *module.buffers()]:
# +     inside = list(module.modules())
# +     for tensor in [t for each in inside for t in (*each._parameters.values(), *each._buffers.values())]:
