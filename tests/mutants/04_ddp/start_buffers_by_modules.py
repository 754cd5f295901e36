"""Buffers module by module: one that two modules share is sent twice."""


# caught by: test_start_alike
# mistake: counted_twice
# says: 2 times, expected 1
# %% start_alike: changed
# -     for tensor in [*module.parameters(), *module.buffers()]:
# +     own = [b for each in module.modules() for b in each.buffers(recurse=False)]
# +     for tensor in [*module.parameters(), *own]:
