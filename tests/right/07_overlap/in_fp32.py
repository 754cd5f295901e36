"""torch does the arithmetic, in its default type."""


# %% least_tokens
def least_tokens(flops, bandwidth, n, element):
    communicate = torch.tensor(2.0 * element * (n - 1) / n / bandwidth)
    return communicate / torch.tensor(4.0 / flops)


# %% reached
def reached(size, n, alpha, beta):
    sizes = torch.full((2 * (n - 1),), size / n)
    return sizes.sum() / (alpha + beta * sizes).sum()


# %% all_reduces
def all_reduces(backwards, sizes, cap, alpha, beta):
    ends = torch.tensor(backwards).flip(0).cumsum(0)
    found, held, free = [], 0, torch.tensor(0.0)
    for i in range(len(sizes)):
        held += sizes[-1 - i]
        if held >= cap or i == len(sizes) - 1:
            begin = torch.maximum(ends[i], free)
            free = begin + alpha + beta * held
            found.append(torch.stack([begin, free]))
            held = 0
    return torch.stack(found)


# %% forward_pass
def forward_pass(gathers, forwards, ahead):
    gathers, forwards = torch.tensor(gathers, dtype=torch.float), torch.tensor(forwards, dtype=torch.float)
    done = torch.zeros(len(gathers) + 1)
    there = torch.zeros(())
    for i in range(len(gathers)):
        there = torch.maximum(there, done[max(0, i - ahead)]) + gathers[i]
        done[i + 1] = torch.maximum(there, done[i]) + forwards[i]
    return done[-1]
