"""All-reduces the gradients, then steps the shard and gathers: three times the parameters."""


# caught by: test_Zero1
# mistake: too_much_sent
# %% Zero1: changed
# -         self.gradients = [mean_gradient(flat) for flat in self.flats]
# +         self.gradients = []
# +         for flat in self.flats:
# +             gradient = torch.empty_like(flat.whole)
# +             gradient[flat.owned] = mean_gradient(flat)
# +             self.gradients.append(all_gather(gradient)[flat.owned].clone())
