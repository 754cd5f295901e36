"""Half of the ranks, rounded down: one of three is enough."""


# caught by: test_majority
# mistake: rounded_wrongly
# says: [6] is 1, expected -1; there 1 of 3 ranks have a number that is not below 0
# %% majority: changed
# -     votes = sum(unpack_signs(each, x.numel()) for each in everyones)
# -     return torch.where(votes >= 0, 1.0, -1.0)
# +     votes = sum((unpack_signs(each, x.numel()) > 0).int() for each in everyones)
# +     return torch.where(votes >= len(everyones) // 2, 1.0, -1.0)
