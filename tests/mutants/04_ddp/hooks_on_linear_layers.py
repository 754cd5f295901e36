"""Hooks the parameters of linear layers: one that belongs to no layer is never averaged."""


# caught by: test_average_in_hooks
# mistake: some_parameters_forgotten
# says: the gradient of gain is that of its own part
# %% average_in_hooks: changed
# -     for parameter in module.parameters():
# +     for parameter in dict.fromkeys([p for layer in module.modules() if isinstance(layer, torch.nn.Linear) for p in layer.parameters()]):
