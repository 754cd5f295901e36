"""Wrong solutions of lab 04_ddp, one of each kind of mistake. ``ringzero_course.authoring.submission`` says how they are written."""

# ==== a_colon_is_missing
"""A syntax error: the cell does not run, so the function that the check finds is older, or is not there."""
# caught by: test_loss_of_part
# says: the cell that defines loss_of_part does not parse (expected ':'
# fails: SyntaxError
# %% loss_of_part
def loss_of_part(model, x, y):
    rank, n = dist.get_rank(), dist.get_world_size()
    if rank >= len(x)
        return (0 * model(x[:0])).sum()
    error = model(x[rank::n]) - y[rank::n]
    return error.square().sum() / y.numel() * n

# ==== part_for_two_ranks
"""One half or the other: right on two ranks."""
# caught by: test_loss_of_part
# %% loss_of_part
def loss_of_part(model, x, y):
    rank = dist.get_rank() % 2
    mine, targets = x[rank::2], y[rank::2]
    return (model(mine) - targets).square().sum() / y.numel() * 2

# ==== part_that_depends_on_nothing
"""Where a rank has no sample, a zero of its own: no gradient comes of it, and there is no hook to call."""
# caught by: test_loss_of_part
# says: the loss of this rank depends on no parameter
# %% loss_of_part: changed
# +     if rank >= len(x):
# +         return torch.zeros((), requires_grad=True)
#       error = model(x[rank::n]) - y[rank::n]

# ==== start_by_modules
"""Goes module by module: what two modules share is sent twice."""
# caught by: test_start_alike
# says: called broadcast on 196 bytes 2 times, expected 1
# %% start_alike: changed
# -     for tensor in [*module.parameters(), *module.buffers()]:
# +     inside = list(module.modules())
# +     for tensor in [t for each in inside for t in (*each._parameters.values(), *each._buffers.values())]:

# ==== start_in_other_memory
"""Each tensor gets other memory with rank 0's numbers, so views of it are left behind."""
# caught by: test_start_alike
# says: is still its own: rank 0's did not come, or not into the memory that it had
# %% start_alike: changed
# -         dist.broadcast(tensor.detach(), src=0)
# +         theirs = tensor.detach().clone()
# +         dist.broadcast(theirs, src=0)
# +         tensor.data = theirs

# ==== start_on_rank_0_alone
"""Rank 0 broadcasts, the others do not: "it is rank 0 that has something to say"."""
# caught by: test_start_alike
# says: never entered broadcast #1
# %% start_alike
def start_alike(module):
    if dist.get_rank() == 0:
        for tensor in [*module.parameters(), *module.buffers()]:
            dist.broadcast(tensor.detach(), src=0)

# ==== start_with_buffers_of_the_top
"""Sends the buffers of the module itself, not those of the modules inside it."""
# caught by: test_start_alike
# %% start_alike: changed
# -     for tensor in [*module.parameters(), *module.buffers()]:
# +     for tensor in [*module.parameters(), *module.buffers(recurse=False)]:

# ==== hooks_add_up
"""The sum for the mean."""
# caught by: test_average_in_hooks
# says: layers.0.weight is 4 times what it should be
# %% average_in_hooks: changed
# -         parameter.grad /= dist.get_world_size()

# ==== hooks_by_max
"""The largest gradient of all ranks, where the mean was wanted: a wrong ReduceOp."""
# caught by: test_average_in_hooks
# says: the gradient of layers.0.weight is off by up to
# %% average_in_hooks: changed
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= dist.get_world_size()
# +         dist.all_reduce(parameter.grad, op=dist.ReduceOp.MAX)

# ==== hooks_never_waited
"""Starts the all-reduce and divides at once; nobody waits for it."""
# caught by: test_average_in_hooks
# %% average_in_hooks: changed
# -         dist.all_reduce(parameter.grad)
# +         dist.all_reduce(parameter.grad, async_op=True)

# ==== hooks_on_frozen_parameters
"""Hooks every parameter; torch refuses the frozen ones."""
# caught by: test_average_in_hooks
# %% average_in_hooks: changed
# -         if parameter.requires_grad:
# -             parameter.register_post_accumulate_grad_hook(average)
# +         parameter.register_post_accumulate_grad_hook(average)

# ==== assign_a_cap_for_the_first
"""A smaller cap for the first bucket, as torch has it."""
# caught by: test_assign
# says: bucket 0 is [3, 2], expected [3, 2, 1]
# %% assign: changed
# -             room = cap
# +             room = cap if len(buckets) > 1 else cap // 2

# ==== assign_uses_up_its_sizes
"""Takes the sizes out of the list that it was given: the caller has an empty one."""
# caught by: test_assign
# says: changed sizes, a list that it was given
# %% assign: changed
# -     for i in reversed(range(len(sizes))):
# +     while sizes:
# @@
# -         buckets[-1].append(i)
# -         room -= sizes[i]
# +         room -= sizes.pop()
# +         buckets[-1].append(len(sizes))

# ==== bucket_misses_any
"""Which parameter is missing is left to chance; only how many is right."""
# caught by: test_Bucket
# says: missing holds others than those 1 that were not put yet
# %% Bucket: changed
# -         self.missing.discard(parameter)
# +         self.missing.pop()

# ==== bucket_never_waits
"""The asynchronous all-reduce is never waited for."""
# caught by: test_Bucket
# says: never called wait() on its all_reduce
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts)}
# @@
# -         """Return when the mean is there, ready for the next step."""
# -         self.work.wait()

# ==== bucket_of_float64
"""A buffer of another type than the gradients."""
# caught by: test_Bucket
# says: the new .grad is double, its parameter is float: give both one dtype
# %% Bucket: changed
# -         self.flat = torch.zeros(sum(sizes))
# +         self.flat = torch.zeros(sum(sizes), dtype=torch.float64)

# ==== bucket_put_adds_up
"""put() adds to what is in the buffer: from the second step on, the last mean is in it."""
# caught by: test_Bucket
# says: the gradient of parameter 0 is 2 times what it should be
# %% Bucket: changed
# -             view.copy_(parameter.grad)
# +             view += parameter.grad

# ==== bucket_views_without_a_shape
"""The gradient becomes a piece of the buffer, one-dimensional, whatever the parameter's shape."""
# caught by: test_Bucket
# says: attempting to assign a gradient of size '[15]' to a tensor of size '[5, 3]'
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = dict(zip(self.parameters, parts, strict=True))
# @@
# -             view.copy_(parameter.grad)
# +             view.copy_(parameter.grad.flatten())

# ==== overlapped_from_different_starts
"""No initial broadcast: right gradients, of different models."""
# caught by: test_Overlapped
# says: on rank 1 at the start layers.0.weight is off
# %% Overlapped: changed
# -         start_alike(module)
# +         pass

# ==== overlapped_ignores_the_cap
"""Buckets of 25 MiB, whatever cap says."""
# caught by: test_Overlapped
# says: called all_reduce on 168 bytes 0 times, expected 3
# %% Overlapped: changed
# -         self.buckets = [Bucket([trained[i] for i in members]) for members in assign(sizes, cap)]
# +         self.buckets = [Bucket([trained[i] for i in members]) for members in assign(sizes, 25 * 2**20)]

# ==== overlapped_too_early
"""Launches a bucket with its first gradient, not its last."""
# caught by: test_Overlapped
# %% Overlapped: changed
# -         if not bucket.missing:
# +         if len(bucket.missing) == len(bucket.parameters) - 1:

# ==== overlapped_waits_for_the_last_bucket
"""Only the bucket that left last is waited for, in the hope that the others came before it."""
# caught by: test_Overlapped
# says: never called wait() on 15 of its 18 all_reduces
# %% Overlapped: changed
# -         for bucket in self.buckets:
# -             bucket.wait()
# +         self.buckets[-1].wait()

# ==== overlapped_waits_in_the_hook
"""Waits for each bucket as soon as it has launched it: backward stands still meanwhile."""
# caught by: test_Overlapped
# says: waited for before the backward pass was over
# %% Overlapped: changed
#               bucket.launch()
# +             bucket.wait()
# @@
# -         """Return when all gradients are the mean. Called after each backward pass, before the optimizer's step."""
# -         for bucket in self.buckets:
# -             bucket.wait()
# +         pass

# ==== no_sync_loses_what_was_added_up
"""Gradients made inside no_sync are thrown away: only the last pass counts."""
# caught by: test_Accumulating
# %% Accumulating: changed
#               super().gradient_ready(parameter)
# +         else:
# +             parameter.grad = None

# ==== no_sync_not_in_the_first_step
"""In the first step every pass is sent, also inside no_sync."""
# caught by: test_Accumulating
# says: rank 0 called all_reduce on 4 bytes 16 times, expected 0
# %% Accumulating: changed
#               super().gradient_ready(parameter)
# +         elif self.first:
# +             dist.all_reduce(torch.zeros(1))
# +
# +     first = True
# +
# +     def finish(self):
# +         super().finish()
# +         self.first = False

# ==== no_sync_silences_all_models
"""Inside no_sync of one model every other one is silent, too."""
# caught by: test_Accumulating
# %% Accumulating: changed
# -         before, self.syncing = self.syncing, False
# +         before, Accumulating.syncing = Accumulating.syncing, False
# @@
# -             self.syncing = before
# +             Accumulating.syncing = before

# ==== no_sync_swallows_exceptions
"""What goes wrong inside is never heard of."""
# caught by: test_Accumulating
# says: kept to itself an exception
# %% Accumulating: changed
#           try:
#               yield
# +         except Exception:
# +             pass
#           finally:

# ==== ddp_finish_does_not_wait
"""finish() launches what is left, and waits for nothing."""
# caught by: test_DDP
# says: never called wait()
# %% DDP: changed
# -         super().finish()

# ==== ddp_in_reverse
"""Launches from the last bucket to the first, so all wait for the one that is full last."""
# caught by: test_DDP
# says: full when layer 3 was done, left when layer 2 had begun
# %% DDP: changed
# -         while self.launched < len(self.buckets) and not self.buckets[self.launched].missing:
# -             self.buckets[self.launched].launch()
# +         while self.launched < len(self.buckets) and not self.buckets[-1 - self.launched].missing:
# +             self.buckets[-1 - self.launched].launch()

# ==== ddp_leaves_out_what_is_not_full
"""Buckets that are not full are not sent: where only some ranks use a layer, the others wait for ever."""
# caught by: test_DDP
# %% DDP
class DDP(Accumulating):
    def gradient_ready(self, parameter):
        super().gradient_ready(parameter)

    def finish(self):
        for bucket in self.buckets:
            if not bucket.missing:
                bucket.wait()
            else:
                bucket.missing = set(bucket.parameters)

# ==== ddp_skips_zero_buckets
"""A bucket of zeros is not sent: other ranks' are not zeros, and wait."""
# caught by: test_DDP
# says: wait() was called, and launch() was not
# %% DDP: changed
# -             self.buckets[self.launched].launch()
# +             if self.buckets[self.launched].flat.any():
# +                 self.buckets[self.launched].launch()

# ==== start_leaves_frozen_parameters_trained
"""Switches gradients off for the broadcast and on again, also where they were off."""
# caught by: test_start_alike
# says: start_alike changed which parameters require a gradient
# %% start_alike: changed
# -     for tensor in [*module.parameters(), *module.buffers()]:
# -         dist.broadcast(tensor.detach(), src=0)
# +     for p in module.parameters():
# +         p.requires_grad_(False)
# +         dist.broadcast(p, src=0)
# +         p.requires_grad_(True)
# +     for b in module.buffers():
# +         dist.broadcast(b, src=0)

# ==== zeros_what_it_is_to_put
"""After zero_grad(set_to_none=False) the gradient is the view, and is zeroed before it is added."""
# caught by: test_Bucket
# %% Bucket: changed
# -         if parameter.grad is None:
# -             view.zero_()
# -         else:
# -             view.copy_(parameter.grad)
# +         view.zero_()
# +         if parameter.grad is not None:
# +             view.add_(parameter.grad)

# ==== one_full_bucket_leaves
"""``if`` for ``while``: a bucket that was full before its turn waits until finish()."""
# caught by: test_DDP
# says: had begun
# %% DDP
class DDP(Accumulating):
    launched = 0

    def gradient_ready(self, parameter):
        if self.syncing:
            self.bucket_of[parameter].put(parameter)
            self.launch_if_full()

    def finish(self):
        for bucket in self.buckets:
            for parameter in list(bucket.missing):
                bucket.put(parameter)
        for _ in self.buckets:
            self.launch_if_full()
        super().finish()
        self.launched = 0

    def launch_if_full(self):
        if self.launched < len(self.buckets) and not self.buckets[self.launched].missing:
            self.buckets[self.launched].launch()
            self.launched += 1
