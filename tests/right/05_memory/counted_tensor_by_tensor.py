"""The parameters as a list of shapes; bytes by the table of the text, row by row, as NumPy or torch numbers."""


# %% gpt_parameters
def gpt_parameters(layers, hidden, vocab, positions, tied=True):
    def linear(n, m, bias=True):
        return [(n, m), (m,)] if bias else [(n, m)]

    norm = [(hidden,), (hidden,)]
    block = [*norm, *norm, *linear(hidden, 3 * hidden), *linear(hidden, hidden)]
    block += [*linear(hidden, 4 * hidden), *linear(4 * hidden, hidden)]
    shapes = [(vocab, hidden), (positions, hidden), *norm, *(block * layers)]
    if not tied:
        shapes += linear(hidden, vocab, bias=False)
    return float(sum(math.prod(shape) for shape in shapes))


# %% model_states
def model_states(params, optimizer="adam", precision="mixed", stage=0, n=1):
    each = [4.0, 4.0, 0.0] if precision == "fp32" else [2.0, 2.0, 4.0]
    each[1] += 4 * (precision == "mixed, fp32 gradients")
    each[2] += dict(sgd=0, momentum=4, adam=8)[optimizer]
    for part, first in enumerate((3, 2, 1)):
        if stage >= first:
            each[part] /= n
    return params * torch.tensor(each, dtype=torch.float64)


# %% activation_bytes
def activation_bytes(batch, sequence, hidden, heads, element=2, mask=1):
    import numpy as np

    sbh, square = batch * sequence * hidden, heads * sequence * sequence * batch
    table = [
        (sbh, element), (sbh, element), (2 * sbh, element), (square, element), (square, mask), (square, element),
        (sbh, element), (sbh, element), (sbh, mask), (sbh, element), (sbh, element), (4 * sbh, element),
        (4 * sbh, element), (sbh, mask),
    ]
    return np.array([count * size for count, size in table], dtype=np.float64).sum()


# %% kept_bytes
def kept_bytes(layers, batch, sequence, hidden, heads, recomputation="none", element=2, mask=1):
    if recomputation == "full":
        return layers * batch * sequence * hidden * element
    whole = layers * activation_bytes(batch, sequence, hidden, heads, element, mask)
    return whole - layers * (recomputation == "selective") * batch * heads * sequence**2 * (2 * element + mask)
