"""In stages 1 and 2 it hands out the parameters themselves, which the next step changes."""
# caught by: test_checkpoint
# mistake: copy_or_view
# %% checkpoint: changed
#       name_of, saved = {p: name for name, p in module.named_parameters()}, {}
# +     whole_already = all(p.untyped_storage().nbytes() for p in module.parameters())
# @@
#                   saved.setdefault(name_of[p], {})[key] = part.view(p.shape)
# +                 if key == "parameter" and whole_already:
# +                     saved[name_of[p]][key] = p.detach()
