"""Sends the buffers of the module itself, not those of the modules inside it."""
# caught by: test_start_alike
# mistake: some_parameters_forgotten
# %% start_alike: changed
# -     for tensor in [*module.parameters(), *module.buffers()]:
# +     for tensor in [*module.parameters(), *module.buffers(recurse=False)]:
