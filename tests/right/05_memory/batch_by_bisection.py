"""Doubles the batch until it does not fit, and then halves the distance."""


# %% largest_batch
def largest_batch(memory, layers, hidden, heads, vocab, sequence, stage=0, n=1, recomputation="none"):
    params = gpt_parameters(layers, hidden, vocab, sequence)

    def fits(batch):
        need = sum(model_states(params, "adam", "mixed", stage, n))
        need += kept_bytes(layers, batch, sequence, hidden, heads, recomputation)
        need += 2 * 2 * batch * sequence * hidden + 4 * batch * sequence * vocab
        return need <= memory

    if not fits(1):
        return 0
    most = 1
    while fits(2 * most):
        most *= 2
    for step in reversed(range(most.bit_length())):
        if fits(most + 2**step):
            most += 2**step
    return most
