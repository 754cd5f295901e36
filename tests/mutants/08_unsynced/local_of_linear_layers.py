"""Averages the parameters of linear layers: one that belongs to no layer is left out."""


# caught by: test_local_sgd
# mistake: some_parameters_forgotten
# %% local_sgd: changed
# -             for p in model.parameters():
# +             for p in dict.fromkeys([p for layer in model.modules() if isinstance(layer, torch.nn.Linear) for p in layer.parameters()]):
