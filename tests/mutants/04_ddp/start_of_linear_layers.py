"""Sends the parameters of linear layers: one that belongs to no layer stays each rank's own."""


# caught by: test_start_alike
# mistake: some_parameters_forgotten
# says: the parameter gain is off
# %% start_alike: changed
# -     for tensor in [*module.parameters(), *module.buffers()]:
# +     for tensor in [*dict.fromkeys([p for layer in module.modules() if isinstance(layer, torch.nn.Linear) for p in layer.parameters()]), *module.buffers()]:
