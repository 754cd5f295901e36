"""Wrong solutions of lab 09_debug_a_hang, one of each kind of mistake. ``ringzero_course.authoring.submission`` says how they are written."""

# ==== report_barrier_before_printing
"""Rank 0 makes sure that all are done before it reports: a barrier that only rank 0 comes to."""
# caught by: test_report
# says: never entered barrier #1
# %% report: changed
# -     return (mean.item(), distance.item()) if dist.get_rank() == 0 else None
# +     if dist.get_rank() == 0:
# +         dist.barrier()
# +         return mean.item(), distance.item()
# +     return None

# ==== report_cause_guessed
"""The numbers are read from the report, the cause is guessed."""
# caught by: test_report
# %% why_report_hangs
def why_report_hangs():
    return {"cause": "only slow", "operation": 7, "waiting": [0], "line": 13}

# ==== report_line_below_the_docstring
"""Counts lines from the docstring on."""
# caught by: test_report
# %% why_report_hangs: changed
# -     return {"cause": "not all enter", "operation": 7, "waiting": [0], "line": 13}
# +     return {"cause": "not all enter", "operation": 7, "waiting": [0], "line": 12}

# ==== report_overwrites_the_losses
"""Sums in place, so that the caller's losses are gone."""
# caught by: test_report
# says: the tensor is wrong in
# %% report
def report(losses):
    n, last = dist.get_world_size(), losses[-1].clone()
    for step in range(len(losses)):
        dist.all_reduce(losses[step])
    mean = losses[-1] / n
    distance = mean_over_ranks((last - mean).abs())
    return (mean.item(), distance.item()) if dist.get_rank() == 0 else None

# ==== report_waiting_are_the_returned
"""Takes those that returned for those that wait."""
# caught by: test_report
# %% why_report_hangs: changed
# -     return {"cause": "not all enter", "operation": 7, "waiting": [0], "line": 13}
# +     return {"cause": "not all enter", "operation": 7, "waiting": [1, 2, 3], "line": 13}

# ==== ring_adds_in_float32
"""Adds in float32, whatever the tensor has."""
# caught by: test_ring_all_reduce
# says: float64 numbers
# %% ring_all_reduce: changed
# -         arriving += landing
# +         arriving.copy_(arriving.float() + landing.float())

# ==== ring_as_handed_out
"""The broken ring, handed in under the new name: right for two ranks."""
# caught by: test_ring_all_reduce
# %% ring_all_reduce
def ring_all_reduce(tensor):
    broken_ring(tensor)

# ==== ring_cause_is_the_cycle
"""Takes the cycle in the report for the cause."""
# caught by: test_ring_all_reduce
# %% why_ring_hangs
def why_ring_hangs():
    return {"cause": "all send first", "cycle": [0, 1], "sources": [1, 0, 1, 2], "line": 5}

# ==== ring_of_the_library
"""ringzero's own."""
# caught by: test_ring_all_reduce
# %% ring_all_reduce
def ring_all_reduce(tensor):
    import ringzero

    ringzero.all_reduce(tensor, algorithm="ring")

# ==== ring_sends_and_waits_first
"""Every rank waits for its send, then receives."""
# caught by: test_ring_all_reduce
# %% ring_all_reduce: changed
# -         together = [dist.P2POp(dist.isend, leaving, right), dist.P2POp(dist.irecv, arriving, left)]
# -         for work in dist.batch_isend_irecv(together):
# -             work.wait()
# +         dist.send(leaving, right)
# +         dist.recv(arriving, left)

# ==== ring_sources_of_a_right_ring
"""Whom a right ring receives from."""
# caught by: test_ring_all_reduce
# %% why_ring_hangs: changed
# -     return {"cause": "wrong peer", "cycle": [0, 1], "sources": [1, 0, 1, 2], "line": 5}
# +     return {"cause": "wrong peer", "cycle": [0, 1], "sources": [3, 0, 1, 2], "line": 5}

# ==== train_all_samples_of_rank_0
"""Every rank works on the samples of rank 0."""
# caught by: test_train
# %% train: changed
# -     x, y = batch(seed, dist.get_rank(), samples)
# +     x, y = batch(seed, 0, samples)

# ==== train_averages_the_losses
"""Returns the mean loss... of its own, of all steps so far."""
# caught by: test_train
# %% train: changed
# -         losses.append(error.square().mean().item())
# +         losses.append((sum(losses) + error.square().mean().item()) / (len(losses) + 1))

# ==== train_averages_the_parameters
"""Each rank takes its own step; what is averaged is w."""
# caught by: test_train
# says: is not its gradient
# %% train: changed
# -         dist.all_reduce(gradient)
# -         w -= lr * gradient / dist.get_world_size()
# +         w -= lr * gradient
# +         dist.all_reduce(w)
# +         w /= dist.get_world_size()

# ==== train_never_waits
"""Starts the all-reduce and goes on."""
# caught by: test_train
# %% train: changed
# -         dist.all_reduce(gradient)
# +         dist.all_reduce(gradient, async_op=True)

# ==== train_worse_counts_from_one
"""Steps counted from 1."""
# caught by: test_train
# %% why_training_diverges: changed
# -     return {"cause": "sum for mean", "worse": 11, "times": 4}
# +     return {"cause": "sum for mean", "worse": 12, "times": 4}

# ==== hooks_average_the_parameters
"""The hook takes the step with the rank's own gradient, then averages the parameter."""
# caught by: test_train_with_hooks
# says: is not its gradient
# %% train_with_hooks: changed
# -         dist.all_reduce(parameter.grad)
# -         parameter.grad /= n
# +         with torch.no_grad():
# +             parameter -= lr * parameter.grad
# +             dist.all_reduce(parameter.data)
# +             parameter /= n
# @@
# -         with torch.no_grad():
# -             for parameter in model.parameters():
# -                 parameter -= lr * parameter.grad

# ==== hooks_bytes_of_three_steps
"""Bytes of three steps."""
# caught by: test_train_with_hooks
# %% why_models_differ: changed
# -     return {"cause": "wrong tensor", "bytes_a_step": 124, "given": "Parameter"}
# +     return {"cause": "wrong tensor", "bytes_a_step": 372, "given": "Parameter"}

# ==== hooks_cause_no_common_start
"""Models that differ, so they must have begun differently."""
# caught by: test_train_with_hooks
# %% why_models_differ
def why_models_differ():
    return {"cause": "no common start", "bytes_a_step": 124, "given": "Parameter"}

# ==== hooks_divide_by_five_at_most
"""Divides by five at most."""
# caught by: test_train_with_hooks
# says: with 6 ranks
# %% train_with_hooks: changed
# -         parameter.grad /= n
# +         parameter.grad /= min(n, 5)

# ==== hooks_never_zeroed
"""zero_grad is forgotten, so gradients of all steps add up."""
# caught by: test_train_with_hooks
# says: that comes of gradients that add up over the steps: call zero_grad in each
# %% train_with_hooks: changed
# -         model.zero_grad()

# ==== hooks_start_and_never_wait
"""Starts the all-reduce and divides at once."""
# caught by: test_train_with_hooks
# %% train_with_hooks: changed
# -         dist.all_reduce(parameter.grad)
# +         dist.all_reduce(parameter.grad, async_op=True)

# ==== sums_as_handed_out
"""The broken program, handed in under the new name: each rank's own order."""
# caught by: test_sum_pieces
# %% sum_pieces
def sum_pieces(tensor, sizes):
    broken_sums(tensor, sizes)

# ==== sums_bytes_of_the_others
"""What the others brought."""
# caught by: test_sum_pieces
# %% why_sums_fail: changed
# -     return {"cause": "different order", "collective": 3, "odd": 1, "bytes": 12, "line": 4}
# +     return {"cause": "different order", "collective": 3, "odd": 1, "bytes": 24, "line": 4}

# ==== sums_in_turns
"""Starts all and waits for none."""
# caught by: test_sum_pieces
# %% sum_pieces: changed
# -         dist.all_reduce(piece)
# +         dist.all_reduce(piece, async_op=True)

# ==== sums_padded
"""Pieces padded to one size, so that nothing stops: each is added to another rank's other piece."""
# caught by: test_sum_pieces
# %% sum_pieces
def sum_pieces(tensor, sizes):
    pieces = tensor.split(list(sizes))
    for piece in sorted(pieces, key=lambda piece: piece.abs().max().item(), reverse=True):
        padded = torch.zeros(max(sizes), dtype=tensor.dtype)
        padded[: piece.numel()] = piece
        dist.all_reduce(padded)
        piece.copy_(padded[: piece.numel()])

# ==== sums_sixteen_pieces
"""Sums the first sixteen pieces."""
# caught by: test_sum_pieces
# %% sum_pieces: changed
# -     for piece in tensor.split(list(sizes)):
# +     for piece in tensor.split(list(sizes))[:16]:

# ==== missing_counts_every_reduce
"""Counts whatever has reduce in its name."""
# caught by: test_first_missing
# says: returned (4, [1]), expected (3, [1])
# %% first_missing: changed
# -         calls[op.rank] += op.kind == "all_reduce"
# +         calls[op.rank] += "reduce" in op.kind

# ==== missing_takes_operations_out
"""Takes the operations out of the trace one by one."""
# caught by: test_first_missing
# %% first_missing: changed
# -     for op in trace:
# +     while trace:
# +         op = trace.pop()

# ==== culprit_begins_at_number_one
"""Forgets that full buffers lost their first entries: who has lost fewer is the one that stands alone."""
# caught by: test_culprit
# %% culprit: changed
# -     first = max(min(mine, default=1) for mine in calls.values())
# +     first = 1

# ==== culprit_by_place_in_the_list
"""Compares the k-th entries, which are not the k-th collectives."""
# caught by: test_culprit
# %% culprit: changed
# -         for entry in dump["entries"]:
# -             calls[rank][entry["collective_seq_id"]] = (entry["profiling_name"], entry["input_sizes"])
# +         for place, entry in enumerate(dump["entries"], 1):
# +             calls[rank][place] = (entry["profiling_name"], entry["input_sizes"])

# ==== culprit_compares_names_alone
"""Does not look at the sizes."""
# caught by: test_culprit
# says: expected (14, [0], 'other size')
# %% culprit: changed
# -             calls[rank][entry["collective_seq_id"]] = (entry["profiling_name"], entry["input_sizes"])
# +             calls[rank][entry["collective_seq_id"]] = (entry["profiling_name"], None)

# ==== culprit_compares_with_rank_0
"""Takes rank 0 for the one that is right."""
# caught by: test_culprit
# says: returned (14, [1, 2, 3], 'never came'), expected (14, [0], 'never came')
# %% culprit: changed
# -         usual = max(at.values(), key=list(at.values()).count)
# +         usual = at[0]
# @@
# -             odd = at[ranks[0]]
# +             odd, usual = at[ranks[0]], usual or at[ranks[0]]
# +             if None in at.values():
# +                 odd = None

# ==== culprit_in_a_healthy_job
"""Says of a job without a fault that all came, instead of None."""
# caught by: test_culprit
# says: expected None
# %% culprit: changed
# -     return None
# +     return last, [], "all came"

# ==== culprit_is_who_waits
"""Blames the ranks with an operation that never ended: these are the ones that time out."""
# caught by: test_culprit
# %% culprit
def culprit(dumps):
    started = {
        rank: entry for rank, dump in dumps.items() for entry in dump["entries"] if entry["state"] == "started"
    }
    if not started:
        return None
    number = min(entry["collective_seq_id"] for entry in started.values())
    calls = {rank: (entry["profiling_name"], entry["input_sizes"]) for rank, entry in started.items()}
    if len(started) < len(dumps):
        return number, list(started), "never came"
    usual = max(calls.values(), key=list(calls.values()).count)
    ranks = [rank for rank in calls if calls[rank] != usual]
    return number, ranks, "other size" if calls[ranks[0]][0] == usual[0] else "something else"

# ==== culprit_needs_an_entry
"""Looks at the first entry of each dump, and one has none."""
# caught by: test_culprit
# says: IndexError
# %% culprit: changed
# -     first = max(min(mine, default=1) for mine in calls.values())
# +     first = max(dump["entries"][0]["collective_seq_id"] for dump in dumps.values())

# ==== culprit_only_the_first_rank
"""Stops at the first rank that is unlike the others."""
# caught by: test_culprit
# %% culprit: changed
# -         ranks = [rank for rank in at if at[rank] != usual]
# +         ranks = [rank for rank in at if at[rank] != usual][:1]

# ==== dumps_blame_who_waits
"""Where all came the tool names the ranks that wait; they are blamed."""
# caught by: test_what_the_dumps_say
# says: to wait is no fault
# %% what_the_dumps_say: changed
# -         "d": [],
# +         "d": [*range(16)],

# ==== dumps_cut_means_never_came
"""A rank without a dump is said never to have come, which nothing tells."""
# caught by: test_what_the_dumps_say
# %% what_the_dumps_say: changed
# -         "c_fault": "no dump",
# +         "c_fault": "never came",

# ==== dumps_fault_of_the_others
"""The rank is right, its fault is guessed."""
# caught by: test_what_the_dumps_say
# %% what_the_dumps_say: changed
# -         "a_fault": "something else",
# +         "a_fault": "other size",

# ==== dumps_last_is_a_broadcast
"""The last collective that ended; it is a broadcast, and its root may send before another rank comes."""
# caught by: test_what_the_dumps_say
# says: could it have ended without that rank
# %% what_the_dumps_say: changed
# -         "last": 19,
# +         "last": 21,

# ==== dumps_ranks_of_the_sentence
"""Copies the ranks of the sentence, of which one was meant to come."""
# caught by: test_what_the_dumps_say
# says: which ranks used the other group
# %% what_the_dumps_say: changed
# -         "b": [2],
# +         "b": [1, 2, 3, 5, 7],

# ==== another_collective_by_its_size
"""Goes by the size alone: another collective with another size is called the same one."""
# caught by: test_culprit
# %% culprit: changed
# -             return number, ranks, "other size" if odd[0] == usual[0] else "something else"
# +             return number, ranks, "other size" if odd[1] != usual[1] else "something else"
