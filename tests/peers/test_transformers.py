"""Models of the transformers library, which know nothing of us, against one process on the whole batch."""

import pytest
import torch
import transformers
from transformers import AutoModelForCausalLM, AutoModelForImageClassification, AutoModelForSeq2SeqLM

from ringzero import launch
from ringzero.zero.units import default_units, parameters_of
from tests.peers import outcomes
from tests.peers.behaviours import ADAMW
from tests.peers.trainers import OURS, OneProcess

SMALL = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24, "vocab_size": 40}
DECODER = SMALL | {"num_key_value_heads": 1, "max_position_embeddings": 32, "pad_token_id": 0}
MODELS = {
    "GPT-2": lambda: AutoModelForCausalLM.from_config(
        transformers.GPT2Config(vocab_size=40, n_positions=32, n_embd=16, n_layer=3, n_head=2, resid_pdrop=0.0,
                                embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)),
    "Llama": lambda: AutoModelForCausalLM.from_config(transformers.LlamaConfig(**DECODER)),
    "Mixtral": lambda: AutoModelForCausalLM.from_config(
        transformers.MixtralConfig(**DECODER, num_local_experts=3), experts_implementation="eager"),
    "BERT": lambda: transformers.BertForMaskedLM(
        transformers.BertConfig(**SMALL, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)),
    "T5": lambda: AutoModelForSeq2SeqLM.from_config(
        transformers.T5Config(vocab_size=40, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, dropout_rate=0.0,
                              decoder_start_token_id=0)),
    "ViT": lambda: AutoModelForImageClassification.from_config(
        transformers.ViTConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
                               image_size=8, patch_size=4, num_labels=3, hidden_dropout_prob=0.0,
                               attention_probs_dropout_prob=0.0)),
}  # fmt: skip
STEPS, BATCH = 2, 12


def model_of(name):
    torch.manual_seed(0)
    return MODELS[name]().double()


def batch(name, step):
    generator = torch.Generator().manual_seed(step)
    if name == "ViT":
        images = torch.randn(BATCH, 3, 8, 8, generator=generator).double()
        return {"pixel_values": images, "labels": torch.randint(0, 3, (BATCH,), generator=generator)}
    tokens = torch.randint(1, 40, (BATCH, 7), generator=generator)
    return {"input_ids": tokens, "labels": tokens}


def train(name, make):
    trainer = make(model_of(name), ADAMW)
    for step in range(STEPS):
        whole = batch(name, step)
        trainer(**{key: trainer.part(value).contiguous() for key, value in whole.items()}).loss.backward()
        trainer.clip(0.5)
        trainer.step()
        trainer.zero_grad()
    return trainer.state()


def every_model(trainers):
    return {f"{name} by {trainer}": train(name, OURS[trainer]) for name in MODELS for trainer in trainers}


@pytest.mark.parametrize(("world_size", "trainers"), [(2, list(OURS)), (4, ["DDP", "ZeRO-3"])])
def test_they_train_as_in_one_process(world_size, trainers):
    alone = {name: train(name, OneProcess) for name in MODELS}
    for rank in launch(every_model, trainers, world_size=world_size).returns:
        for key, state in rank.items():
            assert outcomes.is_close(alone[key.partition(" by ")[0]], state), key


@pytest.mark.parametrize("name", MODELS)
def test_their_blocks_are_units_of_stage_3(name):
    """No unit, the model itself included, has more than half of the parameters of the blocks."""
    model = model_of(name)
    trained = dict(model.named_parameters())
    parts = parameters_of(default_units(model), model, trained)
    sizes = {type(unit).__name__: sum(p.numel() for p in part.values()) for unit, part in parts.items()}
    blocks = [unit for unit in parts if type(unit).__name__.endswith(("Block", "Layer"))]
    assert len(blocks) >= 2, sizes
    in_blocks = sum(p.numel() for unit in blocks for p in parts[unit].values())
    embeddings = sum(
        p.numel() for n, p in trained.items() if "embed" in n or "wte" in n or "shared" in n or "head" in n
    )
    assert in_blocks >= 0.8 * (sum(p.numel() for p in trained.values()) - embeddings), sizes
