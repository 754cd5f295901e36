"""A replicated model passed off as ZeRO-3."""


# caught by: test_Zero3
# mistake: stages_mixed_up
# says: after the step rank 0 holds 58,236 bytes; its shards of the parameters
# %% Zero3: changed
# -     flat_class = Sharded
# +     flat_class = Flat
# @@
# -         for layer, flat in zip(layers, self.flats, strict=True):
# -             layer.register_forward_pre_hook(lambda *_, flat=flat: flat.gather())
# -             layer.register_forward_hook(lambda *_, flat=flat: flat.free())
# -             layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())
# @@
# -         if all(p.grad is None for p in self.flats[i].parameters):
# -             self.flats[i].free()
# @@
#               adamw(flat.shard, self.gradients[i], self.states[i])
# +             all_gather(flat.whole)
