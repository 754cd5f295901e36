"""Puts all parameters into one vector of fp32: a model in fp64 loses half of its digits."""


# caught by: test_local_sgd
# mistake: type_fixed
# says: right to seven digits only
# %% local_sgd: changed
# -             for p in model.parameters():
# -                 if p.requires_grad:
# -                     dist.all_reduce(p.data)
# -                     p.data /= dist.get_world_size()
# +             trained = [p for p in model.parameters() if p.requires_grad]
# +             sizes = [p.numel() for p in trained]
# +             mean = torch.cat([p.detach().reshape(-1).float() for p in trained])
# +             dist.all_reduce(mean)
# +             for p, part in zip(trained, mean.split(sizes), strict=True):
# +                 p.data.copy_(part.view_as(p) / dist.get_world_size())
