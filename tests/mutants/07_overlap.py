"""Wrong solutions of lab 07_overlap, one of each kind of mistake. ``ringzero_course.authoring.submission`` says how they are written."""

# ==== tokens_by_the_library
"""Asks the library, which the notebook imports."""
# caught by: test_least_tokens
# says: write it yourself
# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return overlap.min_tokens_for_data_parallel(flops, bandwidth, n, element)

# ==== tokens_upside_down
"""Computation over communication."""
# caught by: test_least_tokens
# says: the number of tokens is
# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    return 2 * bandwidth * n / (element * (n - 1) * flops)

# ==== reached_algorithm_bandwidth
"""Buffer over time: not what a rank sends."""
# caught by: test_reached
# says: (0.571 times it)
# %% reached
def reached(size, n, alpha, beta):
    return size / (2 * (n - 1) * (alpha + size / n * beta))

# ==== reached_one_latency_in_all
"""Pays one alpha for all rounds."""
# caught by: test_reached
# says: the bandwidth is
# %% reached
def reached(size, n, alpha, beta):
    return 2 * (n - 1) * size / n / (alpha + 2 * (n - 1) * size / n * beta)

# ==== degree_is_the_others
"""Counts the ranks from which it receives, and not the rank itself."""
# caught by: test_largest_degree
# says: expected
# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    return max(1, math.floor(2 * width * bandwidth / (element * flops)))

# ==== degree_not_whole
"""A number of ranks that is not whole."""
# caught by: test_largest_degree
# says: expected
# %% largest_degree
def largest_degree(flops, bandwidth, width, element):
    return 1 + 2 * width * bandwidth / (element * flops)

# ==== clock_latency_of_every_tensor
"""Pays an alpha for each layer of a bucket."""
# caught by: test_all_reduces
# says: the end of all-reduce 0
# %% all_reduces: changed
# -         filling += sizes[layer]
# +         filling += sizes[layer] + alpha / beta

# ==== clock_rest_forgotten
"""Never sends what is left in the last bucket."""
# caught by: test_all_reduces
# says: expected
# %% all_reduces: changed
# -         if filling >= cap or layer == 0:
# +         if filling >= cap:

# ==== exposed_in_milliseconds
"""Milliseconds, where seconds were asked for."""
# caught by: test_exposed
# says: (1e+03 times it: milliseconds, not seconds?)
# %% exposed: changed
# -     return seconds
# +     return 1000 * seconds

# ==== exposed_sorts_the_record
"""Sorts the record that it was given."""
# caught by: test_exposed
# %% exposed: changed
#       """Seconds in which a rank communicates and does not compute."""
# +     operations.sort(key=lambda op: op.start)
#       moments = sorted({moment for op in operations for moment in (op.start, op.end)})

# ==== cap_ends_last
"""The worst."""
# caught by: test_best_cap
# says: the step ends after
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    return max(caps, key=lambda cap: all_reduces(backwards, sizes, cap, alpha, beta)[-1][1])

# ==== cap_sorts_the_caps
"""Sorts the caller's caps."""
# caught by: test_best_cap
# %% best_cap: changed
#       """The bucket size of ``caps`` (bytes) with which the last all-reduce ends first."""
# +     caps.sort()
#       return min(caps, key=lambda cap: all_reduces(backwards, sizes, cap, alpha, beta)[-1][1])

# ==== prefetch_hides_all
"""The longer of the two sums."""
# caught by: test_forward_pass
# says: the time is
# %% forward_pass
def forward_pass(gathers, forwards, ahead):
    return max(sum(gathers), sum(forwards)) if ahead else sum(gathers) + sum(forwards)

# ==== prefetch_one_too_many
"""Gathers one layer more than allowed."""
# caught by: test_forward_pass
# says: the time is
# %% forward_pass: changed
# -         freed = done[layer - ahead - 1] if layer > ahead else 0
# +         freed = done[layer - ahead - 2] if layer > ahead + 1 else 0

# ==== prefetch_takes_the_gathers_out
"""Takes each gather out of the list."""
# caught by: test_forward_pass
# %% forward_pass: changed
# -         gathered = max(gathered, freed) + gathers[layer]
# +         gathered = max(gathered, freed) + gathers.pop(0)

# ==== bubble_below_the_share
"""Wants less than the share, where as much is allowed."""
# caught by: test_least_micro_batches
# says: counted 5, expected 4
# %% least_micro_batches: changed
# -     while (stages - 1) / (pieces * m + stages - 1) > share * (1 + 1e-12):
# +     while (stages - 1) / (pieces * m + stages - 1) >= share:

# ==== bubble_never_ends
"""Asks again and again for the same number of micro-batches."""
# caught by: test_least_micro_batches
# says: came to no end: is this loop endless?
# %% least_micro_batches: changed
# -         m += 1
# +         pass

# ==== kept_alike_on_all_stages
"""As many on every stage."""
# caught by: test_kept
# says: counted 4, expected 3
# %% kept
def kept(i, stages, micro_batches):
    return min(stages, micro_batches)

# ==== kept_as_in_gpipe
"""Keeps all micro-batches, as GPipe does."""
# caught by: test_kept
# says: counted 16, expected 4
# %% kept
def kept(i, stages, micro_batches):
    return micro_batches

# ==== late_after_the_first
"""Charges the time since the first rank came."""
# caught by: test_straggler
# says: what it is charged is
# %% straggler: changed
# -         charges[last] += times[last] - statistics.median(others)
# +         charges[last] += times[last] - min(others)

# ==== late_by_its_own_collectives
"""Averages over the collectives in which that rank is last, not over all."""
# caught by: test_straggler
# says: returned (3, 1.0), and there is no straggler
# %% straggler: changed
# -     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters):
# +     often = sum(times.index(max(times)) == rank for times in enters)
# +     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * often:

# ==== late_first_collective_left_out
"""The first collective warms up."""
# caught by: test_straggler
# %% straggler: changed
# -     for times in enters:
# +     for times in enters[1:]:

# ==== late_sorts_the_times
"""Sorts the times of each collective where they are."""
# caught by: test_straggler
# %% straggler: changed
# -         others = times[:last] + times[last + 1 :]
# -         charges[last] += times[last] - statistics.median(others)
# +         times.sort()
# +         charges[last] += times[-1] - statistics.median(times[:-1])

# ==== step_a_message_a_layer
"""Sends every gradient by itself."""
# caught by: test_backward_pass
# says: called all_reduce on 2000 bytes
# %% backward_pass: changed
# -         if sum(4 * gradient.numel() for gradient in filling) >= cap or number == 0:
# +         if filling:

# ==== step_gradients_reversed
"""Returns the gradients in the order in which they came."""
# caught by: test_backward_pass
# says: the gradient of layer 0 in step 1 is off
# %% backward_pass: changed
# -     return gradients[::-1]
# +     return gradients

# ==== step_computes_forwards
"""Computes the first layer first, and sends buckets in the right order at the end."""
# caught by: test_backward_pass
# says: full when layer 5 was done, left when layer 4 had begun
# %% backward_pass: changed
# -     filling, travelling = [], []
# +     filling, travelling = [], []
# +     done = [layer.backward() for layer in layers]
# @@
# -         filling.append(layers[number].backward())
# +         filling.append(done[number])

# ==== step_sends_at_the_end
"""Computes all layers, then sends the buckets: nothing overlaps."""
# caught by: test_backward_pass
# says: full when layer 5 was done, left when layer 4 had begun
# %% backward_pass: changed
# -     filling, travelling = [], []
# +     filling, travelling = [], []
# +     done = [layer.backward() for layer in layers[::-1]][::-1]
# @@
# -         filling.append(layers[number].backward())
# +         filling.append(done[number])

# ==== step_never_waits
"""Divides without waiting."""
# caught by: test_backward_pass
# says: never called wait() on its all_reduce
# %% backward_pass: changed
# -         work.wait()

# ==== step_waits_for_nothing
"""Calls all_reduce without async_op, and wait() on the None that it returns."""
# caught by: test_backward_pass
# says: (a collective without async_op=True waits itself and returns None)
# %% backward_pass: changed
# -             work = dist.all_reduce(flat, async_op=True)
# +             work = dist.all_reduce(flat)

# ==== step_waits_for_the_future
"""Waits without wait() of the handle: by its future."""
# caught by: test_backward_pass
# says: waits for its all_reduce
# %% backward_pass: changed
#               work = dist.all_reduce(flat, async_op=True)
# +             work.get_future().wait()

# ==== plan_by_the_planner
"""Asks the planner."""
# caught by: test_plan
# says: write it yourself
# %% plan
def plan(nodes):
    best = planner.rank(MODELS["llama3-70b"], Cluster("H100", nodes=nodes), 32 * nodes).fitting[0].plan
    names = ("data", "tensor", "pipeline", "stage", "recomputation")
    return {name: getattr(best, name) for name in names}

# ==== plan_for_8_nodes_only
"""Half as many stages as nodes: right for 8 nodes and more, too few for 4."""
# caught by: test_plan
# says: with (4): the plan needs 78 GB, and of a GPU's 80 GB 74 can be used
# %% plan
def plan(nodes):
    return {"data": 2, "tensor": 8, "pipeline": nodes // 2, "stage": 1}

# ==== plan_zero_3_in_a_pipeline
"""ZeRO-3 in a pipeline."""
# caught by: test_plan
# says: would reduce them for each
# %% plan
def plan(nodes):
    return {"data": nodes // 4, "tensor": 8, "pipeline": 4, "stage": 3}
