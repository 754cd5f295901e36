"""Copies by layer in a dict, begun in a function; lists are built beforehand; smallest_window counts down."""


# %% through_window
def forward_through_window(vectors, x, k, link, compute):
    flying, inputs = {}, [None] * len(vectors)

    def begin(i):
        if 0 <= i < len(vectors) and i not in flying:
            flying[i] = link.start_to_device(vectors[i])

    for i in range(min(k, len(vectors))):
        begin(i)
    for i in range(len(vectors)):
        inputs[i] = x
        w = flying[i].wait()
        x = compute(i, w, x)
        del w
        begin(i + k)
    return x, tuple(inputs)


def backward_through_window(vectors, inputs, gradient, k, link, differentiate):
    coming = [link.start_to_device(vector) for vector in vectors[::-1][:k]]
    todo, leaving = list(range(len(vectors))), []
    while todo:
        i = todo.pop()
        w = coming.pop(0).wait()
        gradient, mine = differentiate(i, w, inputs[i], gradient)
        leaving.insert(0, link.start_to_host(mine))
        w = mine = None
        if i >= k:
            coming.append(link.start_to_device(vectors[i - k]))
    return [gradient, [copy.wait() for copy in leaving]]


# %% smallest_window
def smallest_window(copies, computes):
    n = len(copies)

    def finish(k):
        there, ends = [0.0] * n, [0.0] * n
        for i in range(n):
            link_free = there[i - 1] if i else 0.0
            there[i] = (max(link_free, ends[i - k]) if i >= k else link_free) + copies[i]
            ends[i] = (max(there[i], ends[i - 1]) if i else there[i]) + computes[i]
        return ends[n - 1]

    import math

    k = n
    while k > 1 and math.isclose(finish(k - 1), finish(n), rel_tol=1e-9, abs_tol=1e-9):
        k -= 1
    return [float(k), finish(k)]
