"""Takes the flats to lie in the order of the names."""


# caught by: test_checkpoint
# mistake: wrong_place
# %% checkpoint: changed
# -     name_of, saved = {p: name for name, p in module.named_parameters()}, {}
# +     of_flats = [p for flat in zero.flats for p in flat.parameters]
# +     name_of, saved = dict(zip(of_flats, dict(module.named_parameters()), strict=True)), {}
