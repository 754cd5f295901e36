"""Wrong solutions of lab 11_silent_bugs, one of each kind of mistake. ``ringzero_course.authoring.submission`` says how they are written."""

# ==== order_cause_is_the_second_bug
"""Finds that epochs are alike, and takes the cause for random numbers that are the same."""
# caught by: test_epoch_order
# %% why_samples_are_missing: changed
# -     return {"cause": "orders of their own", "never": 8, "most": 3}
# +     return {"cause": "same draws", "never": 8, "most": 3}

# ==== order_counts_taken_for_missing
"""Counts the samples that are taken, and how often most of them are."""
# caught by: test_epoch_order
# says: 'never' is 16
# %% why_samples_are_missing: changed
# -     return {"cause": "orders of their own", "never": 8, "most": 3}
# +     return {"cause": "orders of their own", "never": 16, "most": 1}

# ==== order_epoch_forgotten
"""One seed on all ranks, and the epoch is still not in it."""
# caught by: test_epoch_order
# says: takes its samples in epoch 1 as in epoch 0
# %% epoch_order: changed
# -     source = torch.Generator("cpu").manual_seed(1000 * seed + epoch)
# +     source = torch.Generator("cpu").manual_seed(seed)

# ==== order_epoch_added_rank_kept
"""The epoch is in the seed, and so is the rank."""
# caught by: test_epoch_order
# says: times
# %% epoch_order: changed
# -     source = torch.Generator("cpu").manual_seed(1000 * seed + epoch)
# +     source = torch.Generator("cpu").manual_seed(1000 * seed + epoch + rank)

# ==== order_from_the_global_numbers
"""Shuffles with the process's own random numbers."""
# caught by: test_epoch_order
# says: times
# %% epoch_order: changed
# -     source = torch.Generator("cpu").manual_seed(1000 * seed + epoch)
# -     order = torch.randperm(count, generator=source, device="cpu").tolist()
# +     order = torch.randperm(count, device="cpu").tolist()

# ==== order_cut_and_then_shuffled_by_nothing
"""Gives up shuffling, so that every sample is there."""
# caught by: test_epoch_order
# says: they are not shuffled
# %% epoch_order: changed
# -     order = torch.randperm(count, generator=source, device="cpu").tolist()
# +     order = list(range(count))

# ==== order_of_rank_0_unseeded
"""Rank 0 shuffles and broadcasts, without the seed."""
# caught by: test_epoch_order
# says: no run can be repeated
# %% epoch_order
def epoch_order(count, seed, epoch):
    import random

    order = torch.tensor(random.SystemRandom().sample(range(count), count))
    dist.broadcast(order, src=0)
    return order.tolist()[dist.get_rank() :: dist.get_world_size()]

# ==== order_seed_forgotten
"""The epoch takes the seed's place, as in DistributedSampler before torch 1.7."""
# caught by: test_epoch_order
# says: with another seed
# %% epoch_order: changed
# -     source = torch.Generator("cpu").manual_seed(1000 * seed + epoch)
# +     source = torch.Generator("cpu").manual_seed(epoch)

# ==== tokens_as_handed_out
"""The broken program under the new name."""
# caught by: test_train_on_tokens
# says: all ranks count alike
# %% train_on_tokens
def train_on_tokens(model, batches, lr):
    return broken_tokens(model, batches, lr)

# ==== tokens_not_times_n
"""Divides by all tokens, and then averages over the ranks."""
# caught by: test_train_on_tokens
# says: 1/N of their length
# %% train_on_tokens: changed
# -         loss = total * dist.get_world_size() / tokens  # average_gradients divides by N
# +         loss = total / tokens

# ==== tokens_averaged_over_the_ranks
"""Divides its sum by the mean number of tokens, and the gradients add up over the ranks."""
# caught by: test_train_on_tokens
# says: N times too long
# %% train_on_tokens: changed
# -         average_gradients(model)
# +         for parameter in model.parameters():
# +             dist.all_reduce(parameter.grad)

# ==== tokens_never_averaged
"""Counts all tokens, and leaves the average out as if the count had done it."""
# caught by: test_train_on_tokens
# %% train_on_tokens: changed
# -         average_gradients(model)

# ==== tokens_cause_misspelt
"""Writes the cause in words of its own."""
# caught by: test_train_on_tokens
# says: not one of
# %% why_tokens_count_unlike: changed
# -     return {"cause": "mean of means", "heavy": 4, "light": 0.5}
# +     return {"cause": "average of averages", "heavy": 4, "light": 0.5}

# ==== tokens_all_places_counted
"""Counts the places, not the tokens."""
# caught by: test_train_on_tokens
# %% train_on_tokens: changed
# -         tokens = (labels != -100).sum()
# +         tokens = torch.tensor(labels.numel(), device=labels.device)

# ==== tokens_skipped_where_there_are_none
"""A rank without tokens goes on to its next batch, while the others sum."""
# caught by: test_train_on_tokens
# %% train_on_tokens: changed
# -         tokens = (labels != -100).sum()
# +         tokens = (labels != -100).sum()
# +         if tokens == 0:
# +             continue

# ==== tokens_weight_upside_down
"""What it should count over what it counts."""
# caught by: test_train_on_tokens
# says: 'heavy' is 0.25
# %% why_tokens_count_unlike: changed
# -     return {"cause": "mean of means", "heavy": 4, "light": 0.5}
# +     return {"cause": "mean of means", "heavy": 0.25, "light": 2}

# ==== windows_rest_left_out
"""Drops what makes no full window."""
# caught by: test_train_in_windows
# says: left out
# %% train_in_windows: changed
# -         some = batches[start : start + window]
# +         some = batches[start : start + window]
# +         if len(some) < window:
# +             break

# ==== windows_divided_by_the_window
"""The first bug is still there."""
# caught by: test_train_in_windows
# says: divided as a full one
# %% train_in_windows: changed
# -             (functional.mse_loss(model(x), y) / len(some)).backward()
# +             (functional.mse_loss(model(x), y) / window).backward()

# ==== windows_by_the_remainder
"""Divides the last window by len % window: right, unless nothing is left."""
# caught by: test_train_in_windows
# %% train_in_windows
def train_in_windows(model, batches, window, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr)
    rest = len(batches) % window
    for i, (x, y) in enumerate(batches):
        last = i >= len(batches) - window and i >= len(batches) - rest
        (functional.mse_loss(model(x), y) / (rest if last else window)).backward()
        if (i + 1) % window == 0:
            average_gradients(model)
            optimizer.step()
            optimizer.zero_grad()

# ==== windows_never_zeroed
"""Gradients of all windows add up."""
# caught by: test_train_in_windows
# %% train_in_windows: changed
# -         optimizer.zero_grad()

# ==== windows_not_divided
"""Adds the micro-batches' means up."""
# caught by: test_train_in_windows
# %% train_in_windows: changed
# -             (functional.mse_loss(model(x), y) / len(some)).backward()
# +             functional.mse_loss(model(x), y).backward()

# ==== windows_rest_not_averaged
"""Takes a step for the rest, without the other ranks."""
# caught by: test_train_in_windows
# %% train_in_windows: changed
# -         average_gradients(model)
# +         if len(some) == window:
# +             average_gradients(model)

# ==== windows_cause_and_steps
"""Counts the full windows, and takes the cause for that of the last program."""
# caught by: test_train_in_windows
# says: 'steps' is 2
# %% why_the_last_step_is_wrong: changed
# -     return {"cause": "wrong divisor", "steps": 3, "times": 0.5}
# +     return {"cause": "mean of means", "steps": 2, "times": 0.5}

# ==== windows_ratio_upside_down
"""How long it should be over how long it is."""
# caught by: test_train_in_windows
# says: 'times' is 2
# %% why_the_last_step_is_wrong: changed
# -     return {"cause": "wrong divisor", "steps": 3, "times": 0.5}
# +     return {"cause": "wrong divisor", "steps": 3, "times": 2}

# ==== dropout_seed_plus_rank_too_early
"""Seeds with the rank before the model is made."""
# caught by: test_train_with_dropout
# says: differs from that on rank 0
# %% train_with_dropout: changed
# -     torch.manual_seed(seed)
# -     model = make()
# -     torch.manual_seed(1000 * seed + dist.get_rank())
# +     torch.manual_seed(seed + dist.get_rank())
# +     model = make()

# ==== dropout_in_evaluation_mode
"""Switches dropout off, so that ranks and one process agree."""
# caught by: test_train_with_dropout
# says: drops nothing
# %% train_with_dropout: changed
# -     model = make()
# +     model = make().eval()

# ==== dropout_seeded_in_each_step
"""Seeds with the rank in front of each step."""
# caught by: test_train_with_dropout
# says: seeded anew in each step
# %% train_with_dropout: changed
# -         optimizer.zero_grad()
# +         optimizer.zero_grad()
# +         torch.manual_seed(1000 * seed + dist.get_rank())

# ==== dropout_unseeded
"""Takes random numbers that nobody can repeat."""
# caught by: test_train_with_dropout
# says: no run can be repeated
# %% train_with_dropout: changed
# -     torch.manual_seed(1000 * seed + dist.get_rank())
# +     torch.seed()

# ==== dropout_seeded_with_the_seed_again
"""Seeds again after the model is made, with the same number on all ranks."""
# caught by: test_train_with_dropout
# says: drop the same units
# %% train_with_dropout: changed
# -     torch.manual_seed(1000 * seed + dist.get_rank())
# +     torch.manual_seed(1000 * seed)

# ==== dropout_all_draws_counted
"""Counts sixteen patterns, and names a cause that goes with them."""
# caught by: test_train_with_dropout
# says: 'patterns' is 16
# %% why_dropout_is_weak: changed
# -     return {"cause": "same draws", "patterns": 4}
# +     return {"cause": "orders of their own", "patterns": 16}

# ==== pairs_as_handed_out
"""The broken program under the new name."""
# caught by: test_train_on_pairs
# says: 1/N of their length
# %% train_on_pairs
def train_on_pairs(model, batches, lr):
    return broken_pairs(model, batches, lr)

# ==== pairs_of_its_own_alone
"""Gives up the other ranks' pairs."""
# caught by: test_train_on_pairs
# says: own pairs alone
# %% train_on_pairs: changed
# -         loss = pair_loss(gather(model(a)), gather(model(b)))
# -         (loss * dist.get_world_size()).backward()  # each rank has a part of the gradient: their sum, not their mean
# +         loss = pair_loss(model(a), model(b))
# +         loss.backward()

# ==== pairs_gathered_with_gradients_and_multiplied
"""Mends it twice: gradients flow back, and the loss is multiplied."""
# caught by: test_train_on_pairs
# says: N times too long
# %% train_on_pairs: changed
# -         loss = pair_loss(gather(model(a)), gather(model(b)))
# +         from torch.distributed.nn.functional import all_gather
# +
# +         loss = pair_loss(torch.cat(all_gather(model(a))), torch.cat(all_gather(model(b))))

# ==== pairs_one_side_gathered
"""Gathers one side with its own part in place, and forgets the other's gradient."""
# caught by: test_train_on_pairs
# %% train_on_pairs: changed
# -         loss = pair_loss(gather(model(a)), gather(model(b)))
# +         loss = pair_loss(gather(model(a)), gather(model(b)).detach())

# ==== pairs_never_averaged
"""Multiplies by N, and steps with its own part."""
# caught by: test_train_on_pairs
# %% train_on_pairs: changed
# -         average_gradients(model)

# ==== pairs_ratio_upside_down
"""How long it should be over how long it is."""
# caught by: test_train_on_pairs
# says: 'four' is 4
# %% why_pairs_learn_slowly: changed
# -     return {"cause": "no way back", "four": 0.25, "eight": 0.125}
# +     return {"cause": "no way back", "four": 4, "eight": 8}

# ==== pairs_cause_is_a_sum
"""Thinks that a factor of N is always a sum."""
# caught by: test_train_on_pairs
# %% why_pairs_learn_slowly: changed
# -     return {"cause": "no way back", "four": 0.25, "eight": 0.125}
# +     return {"cause": "sum for mean", "four": 0.25, "eight": 0.125}

# ==== schedule_on_rank_0
"""Advances the schedule on rank 0 alone."""
# caught by: test_train_with_schedule
# %% train_with_schedule: changed
# -         schedule.step()
# +         if dist.get_rank() == 0:
# +             schedule.step()

# ==== schedule_total_divided
"""Divides total by N, too, so that all is faster still."""
# caught by: test_train_with_schedule
# %% train_with_schedule: changed
# -         return min(step / warmup, max(0.0, (total - step) / (total - warmup)))
# +         n = dist.get_world_size()
# +         return min(step / (warmup / n), max(0.0, (total - n * step) / (total - warmup)))

# ==== schedule_before_the_step
"""Advances the schedule before the optimizer's step."""
# caught by: test_train_with_schedule
# says: a step ahead
# %% train_with_schedule: changed
# -         optimizer.step()
# -         schedule.step()
# +         schedule.step()
# +         optimizer.step()

# ==== schedule_rate_times_n
"""Multiplies the rate by N in place of the schedule's steps."""
# caught by: test_train_with_schedule
# says: N times too long
# %% train_with_schedule: changed
# -     optimizer = torch.optim.SGD(model.parameters(), lr)
# +     optimizer = torch.optim.SGD(model.parameters(), lr * dist.get_world_size())

# ==== schedule_still_n_times
"""Leaves the loop in."""
# caught by: test_train_with_schedule
# says: advances
# %% train_with_schedule
def train_with_schedule(model, batches, lr, warmup, total):
    return broken_schedule(model, batches, lr, warmup, total)

# ==== schedule_peak_counted_from_one
"""Counts steps from 1, and thinks that something was summed."""
# caught by: test_train_with_schedule
# says: 'peak' is 3
# %% why_training_stops: changed
# -     return {"cause": "once for each rank", "peak": 2, "idle": 10}
# +     return {"cause": "sum for mean", "peak": 3, "idle": 11}

# ==== nan_others_go_on
"""All ranks step, with zeros from the one that has NaN."""
# caught by: test_train_past_nan
# says: here the others still step
# %% train_past_nan
def train_past_nan(model, batches, lr):
    optimizer = torch.optim.SGD(model.parameters(), lr)
    for x, y in batches:
        optimizer.zero_grad()
        loss = functional.mse_loss(model(x), y)
        loss.backward()
        if not loss.isfinite():
            optimizer.zero_grad(set_to_none=False)
        average_gradients(model)
        optimizer.step()

# ==== nan_rank_0_decides
"""All ranks do what rank 0's loss says."""
# caught by: test_train_past_nan
# says: has NaN in it
# %% train_past_nan: changed
# -         dist.all_reduce(broken)
# +         dist.broadcast(broken, src=0)

# ==== nan_skips_alone
"""A rank with NaN goes on to its next batch, while the others average."""
# caught by: test_train_past_nan
# %% train_past_nan: changed
# -         dist.all_reduce(broken)

# ==== nan_replaced
"""Puts zeros where NaN is, in gradients that were averaged."""
# caught by: test_train_past_nan
# %% train_past_nan: changed
# -         broken = (~loss.isfinite()).double()
# -         dist.all_reduce(broken)
# -         if broken.item():
# -             continue
# -         loss.backward()
# -         average_gradients(model)
# +         loss.backward()
# +         for parameter in model.parameters():
# +             parameter.grad.nan_to_num_(0.0)
# +         average_gradients(model)

# ==== nan_vote_of_all
"""Leaves a step out only where all ranks have NaN."""
# caught by: test_train_past_nan
# says: has NaN in it
# %% train_past_nan: changed
# -         dist.all_reduce(broken)
# +         dist.all_reduce(broken, op=dist.ReduceOp.MIN)

# ==== nan_step_from_the_last_cell
"""Takes the second broken sample for the first, and a consequence for the cause."""
# caught by: test_train_past_nan
# says: 'step' is 8
# %% why_a_rank_is_apart: changed
# -     return {"cause": "alone in deciding", "step": 5, "rank": 3}
# +     return {"cause": "averaged too late", "step": 8, "rank": 1}

# ==== head_broadcast_only
"""The head begins alike; its gradients stay each rank's own."""
# caught by: test_train_with_head
# says: differs from that on rank 0
# %% train_with_head: changed
# -     model = Averaged(nn.Sequential(body, head))
# +     for parameter in head.parameters():
# +         dist.broadcast(parameter.data, src=0)
# +     Averaged(body)
# +     model = Averaged(body)
# +     model.module = nn.Sequential(body, head)

# ==== head_averaged_but_not_alike
"""The head's gradients are averaged, and its parameters begin differently."""
# caught by: test_train_with_head
# says: at the first step differs from that on rank 0
# %% train_with_head: changed
# -     model = Averaged(nn.Sequential(body, head))
# +     model = Averaged(body)
# +     for parameter in head.parameters():
# +         parameter.register_post_accumulate_grad_hook(model.average)
# +     model.module = nn.Sequential(body, head)

# ==== head_as_handed_out
"""The broken program under the new name."""
# caught by: test_train_with_head
# says: at the first step differs from that on rank 0
# %% train_with_head
def train_with_head(make_body, make_head, batches, lr):
    return broken_head(make_body, make_head, batches, lr)

# ==== head_frozen
"""Leaves the head out of the optimizer, so that it stays alike."""
# caught by: test_train_with_head
# %% train_with_head: changed
# -     optimizer, losses = torch.optim.SGD(model.module.parameters(), lr), []
# +     optimizer, losses = torch.optim.SGD(body.parameters(), lr), []

# ==== head_averaged_twice
"""Wraps body and head together, and then averages once more by hand with a sum."""
# caught by: test_train_with_head
# says: N times too long
# %% train_with_head: changed
# -         loss.backward()
# +         loss.backward()
# +         for parameter in model.module.parameters():
# +             dist.all_reduce(parameter.grad)

# ==== head_weights_counted_without_biases
"""Counts the weights of the head alone."""
# caught by: test_train_with_head
# says: 'apart' is ['head.0.weight', 'head.2.weight']
# %% why_heads_differ: changed
# -     apart = ["head.0.weight", "head.0.bias", "head.2.weight", "head.2.bias"]
# -     return {"cause": "outside the wrapper", "apart": apart, "count": 25}
# +     return {"cause": "orders of their own", "apart": ["head.0.weight", "head.2.weight"], "count": 21}

# ==== compare_suspects_the_sum
"""Thinks that the sum over tokens is what is wrong."""
# caught by: test_what_compare_says
# says: 'a' is 'nothing'
# %% what_compare_says: changed
# -     return {"a": "clipped before the reduction", "b": "nothing", "c": "mean of means", "clip": "average, clip"}
# +     return {"a": "nothing", "b": "sum for mean", "c": "nothing", "clip": "average, clip"}

# ==== compare_clips_first
"""Reads the tool's answers, and leaves clipping where it is."""
# caught by: test_what_compare_says
# says: what would one process clip?
# %% what_compare_says: changed
# -     return {"a": "clipped before the reduction", "b": "nothing", "c": "mean of means", "clip": "average, clip"}
# +     return {"a": "clipped before the reduction", "b": "nothing", "c": "mean of means", "clip": "clip, average"}
