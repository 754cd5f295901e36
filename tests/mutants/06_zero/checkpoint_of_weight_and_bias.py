"""Names as of a list of single matrices and biases."""
# caught by: test_checkpoint
# mistake: shown_cases_only
# %% checkpoint: changed
# -     name_of, saved = {p: name for name, p in module.named_parameters()}, {}
# +     name_of, saved = {}, {}
# +     for i, layer in enumerate(module.layers):
# +         for p, kind in zip(layer.parameters(), ("weight", "bias")):
# +             name_of[p] = f"layers.{i}.{kind}"
