"""Wrong solutions of lab 06_zero, one of each kind of mistake. ``ringzero_course.authoring.submission`` says how they are written."""

# ==== plan_stage_1_is_stage_2
"""Shards the gradients in stage 1 already, as most code does not."""
# caught by: test_plan
# says: gradients is 1e+06, expected 4e+06
# %% plan: changed
# -     gradients = 4 * (shard if stage >= 2 else params)
# +     gradients = 4 * (shard if stage >= 1 else params)

# ==== plan_whole_parameters
"""Counts shards of whole parameters, rounded down."""
# caught by: test_plan
# %% plan: changed
# -     shard = params / n
# +     shard = params // n

# ==== flat_copies
"""The parameters get copies: what is written into the vector does not show in them."""
# caught by: test_Flat
# says: what is written into the vector does not show there
# %% Flat: changed
# -             p.data = part.view(p.shape)
# +             p.data = part.view(p.shape).clone()

# ==== flat_indexes_by_an_array
"""A tensor of places is the index, where a slice was to be made: that copies the elements."""
# caught by: test_Flat
# says: owned is a Tensor, not a slice
# %% Flat: changed
# -         self.owned = slice(start, stop)
# +         self.owned = torch.arange(start, stop)

# ==== mean_is_a_view
"""Returns the view, which keeps the whole gradient alive."""
# caught by: test_mean_gradient
# says: holds 224 bytes, where 56 would do: the shard keeps all of the vector; return its clone()
# %% mean_gradient: changed
# -     return reduce_scatter(vector).clone()
# +     return reduce_scatter(vector)

# ==== mean_keeps_the_gradients
"""The whole gradients stay where they were."""
# caught by: test_mean_gradient
# says: a parameter still has its .grad
# %% mean_gradient: changed
# -     for p in flat.parameters:
# -         p.grad = None

# ==== mean_of_vectors_only
"""Gradients are put together without laying them out: right only where all are vectors."""
# caught by: test_mean_gradient
# %% mean_gradient: changed
# -     vector = torch.cat([gradient.reshape(-1) for gradient in gradients])
# +     vector = torch.cat(gradients)

# ==== mean_on_rank_0_alone
"""Rank 0 reduces and keeps its shard; the others only cut theirs out of their own gradient."""
# caught by: test_mean_gradient
# says: never entered ringzero collective #1, reduce_scatter
# %% mean_gradient: changed
# -     return reduce_scatter(vector).clone()
# +     if dist.get_rank() == 0:
# +         return reduce_scatter(vector).clone()
# +     return vector[flat.owned].clone()

# ==== mean_only_when_n_divides
"""Leaves out the elements that N does not divide."""
# caught by: test_mean_gradient
# says: the shard has shape (13,), expected (14,)
# %% mean_gradient: changed
#       vector /= dist.get_world_size()
# +     n = dist.get_world_size()
# +     vector = vector[: vector.numel() // n * n]

# ==== mean_returns_a_list
"""A reduce-scatter and a shard for each parameter, in a list, where one tensor was asked for."""
# caught by: test_mean_gradient
# says: the shard is a list of 2 tensors, not a tensor
# %% mean_gradient: changed
# -     vector = torch.cat([gradient.reshape(-1) for gradient in gradients])
# @@
# -     vector /= dist.get_world_size()
# -     return reduce_scatter(vector).clone()
# +     return [reduce_scatter(gradient.reshape(-1) / dist.get_world_size()).clone() for gradient in gradients]

# ==== zero1_gathers_before_the_step
"""Two lines changed round: what is handed round is what was there before the step."""
# caught by: test_Zero1
# says: all shards are right. Hand them round after the step
# %% Zero1: changed
# -             adamw(flat.shard, self.gradients[i], self.states[i])
# -             all_gather(flat.whole)
# +             all_gather(flat.whole)
# +             adamw(flat.shard, self.gradients[i], self.states[i])

# ==== zero1_appends
"""Appends the shards to a list that has a place for each layer already."""
# caught by: test_Zero1
# says: there are 20 gradients of 10 layers: that of layer i is gradients[i]
# %% Zero1: changed
# -         self.gradients = [mean_gradient(flat) for flat in self.flats]
# +         for flat in self.flats:
# +             self.gradients.append(mean_gradient(flat))

# ==== zero1_order_by_rank
"""Each rank begins with another layer, so that not all work on the same one: their all-gathers do not meet."""
# caught by: test_Zero1
# says: every rank must pass a tensor of the same size and dtype
# %% Zero1: changed
# -         for i, flat in enumerate(self.flats):
# +         rank, many = dist.get_rank(), len(self.flats)
# +         for i in [(rank + k) % many for k in range(many)]:
# +             flat = self.flats[i]

# ==== zero1_rank_0_gathers
"""Only rank 0 gathers, as if it collected the shards for the others."""
# caught by: test_Zero1
# says: the ranks disagree on collective
# %% Zero1: changed
# -             all_gather(flat.whole)
# +             if dist.get_rank() == 0:
# +                 all_gather(flat.whole)

# ==== zero1_states_of_the_class
"""AdamW's numbers belong to the class: a second model takes the first one's place."""
# caught by: test_Zero1
# says: after the last step the shard of layers.0 is off
# %% Zero1: changed
# -         self.states = [{} for _ in self.flats]
# +         type(self).states = [{} for _ in self.flats]

# ==== zero1_states_begin_anew
"""AdamW's numbers are not kept from one step to the next."""
# caught by: test_Zero1
# says: is what AdamW gives whose numbers begin anew in each step
# %% Zero1: changed
# -             adamw(flat.shard, self.gradients[i], self.states[i])
# +             self.states[i] = {}
# +             adamw(flat.shard, self.gradients[i], self.states[i])

# ==== zero2_complete_with_its_first_parameter
"""Takes the first parameter of a layer for the last one that gets a gradient, as it is in one Linear."""
# caught by: test_Zero2
# says: the shard of the gradient of layers.1
# %% Zero2: changed
# -             for p in flat.parameters:
# -                 p.register_post_accumulate_grad_hook(lambda p, i=i: self.gradient_ready(i))
# +             flat.parameters[0].register_post_accumulate_grad_hook(lambda p, i=i: self.gradient_ready(i))
# @@
# -         if any(p.grad is None for p in flat.parameters):
# -             return

# ==== zero2_last_pass_alone
"""A second backward pass takes the place of the first."""
# caught by: test_Zero2
# says: is that of the last backward pass alone
# %% Zero2: changed
# -         self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard
# +         self.gradients[i] = shard

# ==== zero2_averages_the_passes
"""The mean of the passes, where their sum was to be stepped."""
# caught by: test_Zero2
# says: is 0.5 times what it should be
# %% Zero2: changed
# -         self.gradients[i] = shard if self.gradients[i] is None else self.gradients[i] + shard
# +         self.gradients[i] = shard if self.gradients[i] is None else (self.gradients[i] + shard) / 2

# ==== zero2_hooks_see_the_last_layer
"""Hooks made in a loop, which all see the last value of its variable."""
# caught by: test_Zero2
# says: nothing reduced that layer. Hooks made in a loop all see its last i, unless they keep it: lambda p, i=i
# %% Zero2: changed
# -                 p.register_post_accumulate_grad_hook(lambda p, i=i: self.gradient_ready(i))
# +                 p.register_post_accumulate_grad_hook(lambda p: self.gradient_ready(i))

# ==== zero2_keeps_whole_gradients
"""Reduces early, but puts the gradients back where they were until the end."""
# caught by: test_Zero2
# says: gradients that were reduced are kept; all parameters are 37,236
# %% Zero2: changed
#               return
# +         whole = [p.grad for p in flat.parameters]
# @@
#           shard = mean_gradient(flat)
# +         self.kept = {**getattr(self, "kept", {}), i: whole}
# @@
# -         """Nothing is left to do."""
# +         self.kept = {}

# ==== clip_by_the_local_norm
"""Each rank clips by the norm of what it has."""
# caught by: test_clip
# says: the norm is
# %% clip: changed
# -     dist.all_reduce(squares)

# ==== clip_in_the_list
"""Puts other tensors into the list; the gradients themselves stay as they were."""
# caught by: test_clip
# says: times what it should be
# %% clip: changed
# -         for shard in shards:
# -             shard *= max_norm / norm
# +         for i, shard in enumerate(shards):
# +             shards[i] = shard * (max_norm / norm)

# ==== sharded_half_the_bytes
"""Asks for as many bytes as there are elements."""
# caught by: test_Sharded
# %% Sharded: changed
# -         self.whole.untyped_storage().resize_(self.whole.nbytes)
# +         self.whole.untyped_storage().resize_(self.whole.numel())

# ==== sharded_own_part_only
"""Puts its own shard back, and nobody else's."""
# caught by: test_Sharded
# %% Sharded: changed
# -         all_gather(self.whole)

# ==== sharded_own_shard_not_written
"""Gathers the others' shards into new memory, in which its own was never written."""
# caught by: test_Sharded
# says: after gather()
# %% Sharded: changed
# -         self.whole[self.owned] = self.shard

# ==== sharded_shard_is_a_view
"""The shard lies in the memory that is freed."""
# caught by: test_Sharded
# says: the shard has lost its memory
# %% Sharded: changed
# -         self.shard = self.shard.clone()
# +         self.shard = self.shard

# ==== zero3_is_replicated
"""A replicated model passed off as ZeRO-3."""
# caught by: test_Zero3
# says: after the step rank 0 holds
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

# ==== zero3_kept_after_backward
"""Frees a layer after the forward pass only; what the backward pass gathered stays."""
# caught by: test_Zero3
# says: in stage 3, free a layer once it is reduced
# %% Zero3: changed
# -         if all(p.grad is None for p in self.flats[i].parameters):
# -             self.flats[i].free()
# +         pass

# ==== zero3_never_freed_in_forward
"""Layers stay whole until the backward pass."""
# caught by: test_Zero3
# says: what was gathered stays
# %% Zero3: changed
# -             layer.register_forward_hook(lambda *_, flat=flat: flat.free())

# ==== zero3_not_gathered_for_backward
"""Gathers for the forward pass alone."""
# caught by: test_Zero3
# says: memory that was freed is used here, and not gathered again
# %% Zero3: changed
# -             layer.register_full_backward_pre_hook(lambda *_, flat=flat: flat.gather())

# ==== checkpoint_of_the_first_call
"""Keeps the first checkpoint, and gives it to whoever asks again."""
# caught by: test_checkpoint
# says: parameter of layers.0.weight is off
# %% checkpoint: changed
#       """Whole parameters and AdamW's numbers by the parameters' names, from all ranks' shards."""
# +     if hasattr(zero, "saved"):
# +         return zero.saved
# @@
#                   saved.setdefault(name_of[p], {})[key] = part.view(p.shape)
# +     zero.saved = saved

# ==== checkpoint_without_states
"""AdamW's numbers are this rank's alone."""
# caught by: test_checkpoint
# %% checkpoint: changed
# -             all_gather(whole)
# +             if key == "parameter":
# +                 all_gather(whole)

# ==== gradients_over_the_parameters
"""Puts the gradients together in the vector that is there, which is that of the parameters."""
# caught by: test_mean_gradient
# says: mean_gradient changed flat.whole
# %% mean_gradient
def mean_gradient(flat):
    vector, start = flat.whole, 0
    for p in flat.parameters:
        vector[start : start + p.numel()] = 0 if p.grad is None else p.grad.reshape(-1)
        p.grad = None
        start += p.numel()
    return reduce_scatter(vector).clone() / dist.get_world_size()

# ==== checkpoint_of_views_that_are_freed
"""Gathers a layer, keeps its parameters without a copy, and frees it."""
# caught by: test_checkpoint
# says: memory was freed
# %% checkpoint: changed
#       for flat, state in zip(zero.flats, zero.states, strict=True):
# -         for key, shard in (("parameter", flat.shard), *((key, state[key]) for key in ("exp_avg", "exp_avg_sq"))):
# +         if hasattr(flat, "gather"):
# +             flat.gather()
# +         for p in flat.parameters:
# +             saved.setdefault(name_of[p], {})["parameter"] = p.detach()
# +         if hasattr(flat, "free"):
# +             flat.free()
# +         for key, shard in ((key, state[key]) for key in ("exp_avg", "exp_avg_sq")):
