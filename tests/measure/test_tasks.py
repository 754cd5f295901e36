"""The small tasks: each rank has its share of a step's samples, and a model that trains on them learns."""

import pytest
import torch

from ringzero_course.tasks import characters


def test_ranks_share_the_samples_of_a_step():
    whole = characters.batch(step=3, seed=1, samples=24)
    shares = [characters.batch(step=3, rank=rank, world_size=3, seed=1, samples=24) for rank in range(3)]
    for rank, share in enumerate(shares):
        assert torch.equal(share.contexts, whole.contexts[rank::3])
        assert torch.equal(share.following, whole.following[rank::3])


def test_a_sample_is_text_and_what_follows_it():
    contexts, following = characters.batch(step=0, samples=8)
    for row, character in zip(contexts.tolist(), following.tolist(), strict=True):
        assert "".join(characters.alphabet()[i] for i in [*row, character]) in characters.text()


def test_samples_that_ranks_cannot_share_are_refused():
    with pytest.raises(ValueError, match="samples is 128, and 3 ranks"):
        characters.batch(step=0, world_size=3)


def test_training_lowers_the_loss_on_other_text():
    torch.manual_seed(0)
    model = characters.Model(hidden=32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    before = characters.held_out_loss(model, every=16)
    for step in range(60):
        characters.loss(model, characters.batch(step)).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert characters.held_out_loss(model, every=16) < before - 0.5
