"""Wrong solutions of lab 05_memory, one of each kind of mistake. ``ringzero_course.authoring.submission`` says how they are written."""

# ==== adam_betas_exchanged
"""The second beta for the first moment, and the first for the second."""
# caught by: test_adam_step
# says: betas[0] and betas[1] are exchanged
# %% adam_step: changed
# -     if not state:
# +     betas = betas[::-1]
# +     if not state:

# ==== adam_eps_in_the_root
"""ε under the root, as one of the sources prints it."""
# caught by: test_adam_step
# says: ε stands under the root here, and outside of it in the formula
# %% adam_step: changed
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     parameter.sub_(lr * m_hat / (v_hat + eps).sqrt())

# ==== adam_gives_other_memory
"""Gives the parameter new memory in each step; who holds a view of the old one sees no change."""
# caught by: test_adam_step
# %% adam_step: changed
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     parameter.data = parameter.data - lr * m_hat / (v_hat.sqrt() + eps)

# ==== adam_gradients_in_numpy
"""Keeps every gradient, in NumPy arrays that no count of tensors sees."""
# caught by: test_adam_step
# says: times the parameter's, expected 2 times
# %% adam_step: changed
#       state["step"] += 1
# +     state.setdefault("gradients", []).append(gradient.numpy().copy())

# ==== adam_is_torch_s
"""Calls torch's Adam."""
# caught by: test_adam_step
# says: is not to be used here
# %% adam_step: changed
# -     if not state:
# -         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# +     if not state:
# +         state["optimizer"] = torch.optim.Adam([parameter], lr=lr, betas=betas, eps=eps)
# +     parameter.grad = gradient
# +     return state["optimizer"].step()

# ==== adam_makes_a_new_parameter
"""parameter = parameter - ...: a new tensor, which nobody sees; the parameter stays as it was."""
# caught by: test_adam_step
# says: the parameter is what it was before: change it in place
# %% adam_step: changed
# -     parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))
# +     parameter = parameter - lr * m_hat / (v_hat.sqrt() + eps)

# ==== adam_moments_in_float32
"""The moments are float32, whatever the parameter is."""
# caught by: test_adam_step
# says: 1 times the parameter's, expected 2 times: both moments, as tensors of its type, float64
# %% adam_step: changed
# -         state.update(step=0, m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
# +         state.update(step=0, m=torch.zeros(parameter.shape), v=torch.zeros(parameter.shape))

# ==== adam_no_bias_correction
"""The moments as they are, without the hats."""
# caught by: test_adam_step
# says: the moments are not corrected: the hats are missing
# %% adam_step
@torch.no_grad()
def adam_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
    if not state:
        state.update(m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
    state["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    parameter.sub_(lr * state["m"] / (state["v"].sqrt() + eps))

# ==== adam_squares_in_place
"""Squares the gradient where it stands: the next to read it finds another."""
# caught by: test_adam_step
# says: the gradient was changed
# %% adam_step: changed
# -     state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
# +     state["v"].mul_(betas[1]).add_(gradient.square_(), alpha=1 - betas[1])

# ==== adamw_decays_afterwards
"""Adam's step first, then the decay."""
# caught by: test_adamw_step
# says: the parameter decays after Adam's step, not before it
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# -     adam_step(parameter, gradient, state, lr, betas, eps)
# +     adam_step(parameter, gradient, state, lr, betas, eps)
# +     parameter.mul_(1 - lr * weight_decay)

# ==== adamw_ends_training
"""Turns the parameter into one that is not trained, so that it may be changed in place."""
# caught by: test_adamw_step
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     parameter.requires_grad_(False).mul_(1 - lr * weight_decay)

# ==== adamw_is_adam
"""No decay at all."""
# caught by: test_adamw_step
# says: there is no decay
# %% adamw_step: changed
# -     """One step of AdamW for one parameter, in place."""
# -     parameter.mul_(1 - lr * weight_decay)

# ==== adamw_keeps_the_parameter
"""Keeps the parameter of the step before, which nothing needs."""
# caught by: test_adamw_step
# says: 3 times the parameter's, expected 2 times
# %% adamw_step: changed
# -     adam_step(parameter, gradient, state, lr, betas, eps)
# +     adam_step(parameter, gradient, state, lr, betas, eps)
# +     state["before"] = parameter.clone()

# ==== adamw_not_of_single_numbers
"""Decays row by row, which a tensor without dimensions does not have."""
# caught by: test_adamw_step
# %% adamw_step: changed
# -     parameter.mul_(1 - lr * weight_decay)
# +     for row in parameter:
# +         row.mul_(1 - lr * weight_decay)

# ==== adamw_one_count_for_all
"""The number of steps is a global, which begins again with each parameter that is new."""
# caught by: test_adamw_step
# %% adamw_step
STEPS = 0


@torch.no_grad()
def adamw_step(parameter, gradient, state, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
    global STEPS
    parameter.mul_(1 - lr * weight_decay)
    if not state:
        STEPS = 0
        state.update(m=torch.zeros_like(parameter), v=torch.zeros_like(parameter))
    STEPS += 1
    state["m"].mul_(betas[0]).add_(gradient, alpha=1 - betas[0])
    state["v"].mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    m_hat = state["m"] / (1 - betas[0] ** STEPS)
    v_hat = state["v"] / (1 - betas[1] ** STEPS)
    parameter.sub_(lr * m_hat / (v_hat.sqrt() + eps))

# ==== count_by_the_library
"""Asks the library."""
# caught by: test_gpt_parameters
# %% gpt_parameters
def gpt_parameters(layers, hidden, vocab, positions, tied=True):
    from ringzero.costs.page import transformer

    return transformer.gpt_params(layers, hidden, vocab, positions, tied_embeddings=tied)

# ==== count_lookup
"""Knows GPT-2 and the model above."""
# caught by: test_gpt_parameters
# says: counted 209,472, expected 209,600: -128
# %% gpt_parameters
def gpt_parameters(layers, hidden, vocab, positions, tied=True):
    return {(12, 768): 124_439_808, (4, 64): 209_472}[layers, hidden]

# ==== states_by_the_library
"""Asks the library."""
# caught by: test_model_states
# %% model_states
def model_states(params, optimizer="adam", precision="mixed", stage=0, n=1):
    from ringzero.costs.page import memory

    each = memory.bytes_per_param(optimizer, precision != "fp32", precision == "mixed, fp32 gradients")
    return memory.model_state_parts(params, stage, n, each)

# ==== states_in_gb
"""GB, where bytes were asked for."""
# caught by: test_model_states
# says: (1e-09 times it: GB, not bytes?)
# %% model_states: changed
# -         params * parameter / (n if stage >= 3 else 1),
# -         params * gradient / (n if stage >= 2 else 1),
# -         params * kept / (n if stage >= 1 else 1),
# +         params * parameter / (n if stage >= 3 else 1) / 1e9,
# +         params * gradient / (n if stage >= 2 else 1) / 1e9,
# +         params * kept / (n if stage >= 1 else 1) / 1e9,

# ==== activations_by_the_library
"""Asks the library."""
# caught by: test_activation_bytes
# %% activation_bytes
def activation_bytes(batch, sequence, hidden, heads, element=2, mask=1):
    from ringzero.costs.page import memory

    return memory.activation_bytes(batch * sequence, sequence, hidden, heads, bytes_per_element=element, mask_bytes=mask)

# ==== activations_of_one_sequence
"""The batch is left out of the s × s matrices."""
# caught by: test_activation_bytes
# says: the memory of a layer in bytes is 552960, expected 663552 (0.833 times it)
# %% activation_bytes: changed
# -     wide, square = batch * sequence * hidden, heads * sequence**2 * batch
# +     wide, square = batch * sequence * hidden, heads * sequence**2

# ==== kept_always_16_bits
"""34 and 5, whatever the bytes of an element are."""
# caught by: test_kept_bytes
# says: expected 299520 (0.538 times it)
# %% kept_bytes: changed
# -         "none": wide * (16 * element + 2 * mask) + square * (2 * element + mask),
# +         "none": 34 * wide + 5 * square,

# ==== kept_by_a_single_layer
"""The paper's bytes of a layer taken for the model's."""
# caught by: test_kept_bytes
# %% kept_bytes: changed
# -     return layers * of_a_layer[recomputation]
# +     return of_a_layer[recomputation]

# ==== checkpoint_detached_without_gradients
"""The inputs of the second run ask for no gradients."""
# caught by: test_checkpointed
# %% checkpointed: changed
# -         inputs = [x.detach().requires_grad_(x.requires_grad) for x in ctx.saved_tensors]
# +         inputs = [x.detach() for x in ctx.saved_tensors]

# ==== checkpoint_is_torch_s_newer_one
"""Calls torch's own, of the kind that is no autograd.Function."""
# caught by: test_checkpointed
# says: what the library and torch have of this is not to be used here: write it yourself
# %% checkpointed
from torch.utils.checkpoint import checkpoint


def checkpointed(function, *inputs):
    return checkpoint(function, *inputs, use_reentrant=False)

# ==== checkpoint_keeps_the_first_graph
"""The first run records a graph, too, which stays until the backward pass."""
# caught by: test_checkpointed
# says: bytes are held after the forward pass, expected 73,728; without recomputation
# %% checkpointed: changed
# -         return function(*inputs)
# +         with torch.enable_grad():
# +             ctx.first = function(*inputs)
# +         return ctx.first.detach()

# ==== checkpoint_same_gradient_for_all
"""All inputs get the first one's gradient."""
# caught by: test_checkpointed
# %% checkpointed: changed
# -         return None, *[x.grad for x in inputs]
# +         return None, *[inputs[0].grad for _ in inputs]

# ==== checkpoint_that_is_none
"""Calls the function and keeps everything."""
# caught by: test_checkpointed
# says: in 3 calls the function ran 3 times, expected twice in each
# %% checkpointed
def checkpointed(function, *inputs):
    return function(*inputs)

# ==== checkpoint_without_fork
"""Sets the generator for the second run, and leaves it there."""
# caught by: test_checkpointed
# says: the next random number is
# %% checkpointed: changed
# -         with torch.enable_grad(), torch.random.fork_rng():
# +         with torch.enable_grad():

# ==== batch_below_zero
"""A negative batch where the states do not fit."""
# caught by: test_largest_batch
# says: returned -1, not a whole number from 0
# %% largest_batch
def largest_batch(memory, layers, hidden, heads, vocab, sequence, stage=0, n=1, recomputation="none"):
    states = sum(model_states(gpt_parameters(layers, hidden, vocab, sequence), "adam", "mixed", stage, n))
    one = kept_bytes(layers, 1, sequence, hidden, heads, recomputation) + 4 * sequence * (hidden + vocab)
    return math.floor((memory - states) / one)

# ==== batch_by_the_library
"""Asks the library."""
# caught by: test_largest_batch
# %% largest_batch
def largest_batch(memory, layers, hidden, heads, vocab, sequence, stage=0, n=1, recomputation="none"):
    from ringzero.costs.page import memory as formulas
    from ringzero.costs.page import transformer

    states = formulas.model_state_bytes(transformer.gpt_params(layers, hidden, vocab, sequence), stage, n)
    one = formulas.activation_bytes(sequence, sequence, hidden, heads, layers, recomputation=recomputation)
    return max(0, math.floor((memory - states) / (one + formulas.output_activation_bytes(sequence, hidden, vocab))))

# ==== batch_lookup
"""Knows the batches of GPT-2 XL."""
# caught by: test_largest_batch
# says: a batch of 6 needs 7.99882e+10 bytes and would fit
# %% largest_batch: changed
# -     return max(0, math.floor((memory - states) / one))  # all but the states grow with the batch
# +     known = {(0, "none", 80): 5, (0, "full", 80): 118}
# +     return known.get((stage, recomputation, memory // 10**9), 0)
