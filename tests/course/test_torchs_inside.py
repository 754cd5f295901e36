"""What the library uses of torch that torch does not promise, in one place, and that the torch which is installed has it.

``make newest`` runs this beside a few tests of each room with torch's newest release. A line that fails there says what
must be written anew before that release can be pinned.
"""

import ast
import inspect
import re
from functools import cache
from operator import attrgetter
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.nn.modules.batchnorm
import torch.optim._muon
import torch.utils._python_dispatch
import torch.utils._pytree
from torch.distributed import distributed_c10d

from ringzero.record import recording_group

SOURCES = Path(__file__).resolve().parents[2] / "src"
NAMES = {  # what is used -> what for
    "torch.Tensor._make_wrapper_subclass": "a tensor that is not here: parameters whose values other ranks hold",
    "torch._C.DisableTorchFunctionSubclass": "to look at such a tensor without its own __torch_function__",
    "torch._C.Future": "what may stand in place of a work handle",
    "torch._C._autograd._top_saved_tensors_default_hooks": "whether the program packs what autograd saves",
    "torch._C._current_graph_task_id": "whether a backward pass is running, and which",
    "torch._C._dynamo.eval_frame": "code that torch.compile must not compile",
    "torch._C._functorch.peek_interpreter_stack": "whether torch.func differentiates",
    "torch._C._storage_Use_Count": "whether anybody else holds a storage",
    "torch._foreach_norm": "norms of many tensors in one call, as torch's own clipping takes them",
    "torch.autograd.Variable._execution_engine": "to be called when a backward pass is over, as torch's DDP is",
    "torch.autograd.Variable._execution_engine.queue_callback": "the same",
    "torch.distributed._compute_bucket_assignment_by_size": "DDP's buckets, for a lab",
    "torch.distributed.distributed_c10d._coalescing_manager": "messages of NCCL that go out together",
    "torch.distributed.distributed_c10d._get_default_group": "the default group, where none is named",
    "torch.distributed.distributed_c10d._get_default_store": "the store of the default group",
    "torch.distributed.distributed_c10d._new_process_group_helper": "to record the groups that a script makes",
    "torch.distributed.distributed_c10d._world.pg_backend_config": "the name of a recorded group's backend",
    "torch.distributed.distributed_c10d._world.pg_map": "the same",
    "torch.nn.modules.batchnorm._BatchNorm": "to find layers whose statistics are each rank's own",
    "torch.optim._muon._adjust_lr": "Muon's learning rate, as torch's own has it",
    "torch.optim._muon._zeropower_via_newtonschulz": "Muon's iteration, the same to the bit",
    "torch.utils._python_dispatch.TorchDispatchMode": "to see every operation: memory, offloading, strict",
    "torch.utils._python_dispatch.is_traceable_wrapper_subclass": "tensors that consist of others",
    "torch.utils._pytree.tree_leaves": "the tensors in what a module takes and returns",
    "torch.utils._pytree.tree_map": "the same, changed",
}


class _Uses(ast.NodeVisitor):
    """The private names of torch in a file, by their full names."""

    def __init__(self):
        self.known, self.found = {}, set()

    def visit_Import(self, node):  # noqa: N802  (ast's name)
        for each in node.names:
            if each.name.split(".")[0] == "torch":
                self.known[each.asname or "torch"] = each.name if each.asname else "torch"

    def visit_ImportFrom(self, node):  # noqa: N802
        if (node.module or "").split(".")[0] == "torch":
            for each in node.names:
                self.known[each.asname or each.name] = f"{node.module}.{each.name}"
                self._note(f"{node.module}.{each.name}")

    def visit_Attribute(self, node):  # noqa: N802
        parts, inner = [], node
        while isinstance(inner, ast.Attribute):
            parts.insert(0, inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.known:
            self._note(".".join([self.known[inner.id], *parts]))
        else:
            self.generic_visit(node)

    def _note(self, name):
        if any(part.startswith("_") and not part.startswith("__") for part in name.split(".")):
            self.found.add(name)


@cache
def uses():
    found = set()
    for file in SOURCES.rglob("*.py"):
        one = _Uses()
        tree = ast.parse(file.read_text())
        for kind in (ast.Import, ast.ImportFrom):  # also those inside functions, wherever they stand
            for node in ast.walk(tree):
                if isinstance(node, kind):
                    one.visit(node)
        one.visit(tree)
        found |= one.found
    return found


def test_the_table_is_all_there_is():
    modules = {"torch.utils._pytree", "torch.optim._muon", "torch.utils._python_dispatch"}
    assert uses() - modules == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_the_torch_that_is_installed_has_it(name):
    assert attrgetter(name.removeprefix("torch."))(torch) is not None


def test_a_new_group_takes_its_backend_as_the_fourth_argument():
    """``record_all`` puts another name there."""
    parameters = list(inspect.signature(distributed_c10d._new_process_group_helper).parameters)
    assert parameters[:5] == ["group_size", "group_rank", "global_ranks_in_group", "backend", "store"]


def test_a_process_group_has_no_call_that_goes_by_unrecorded():
    """``TracedProcessGroup`` overrides what a program can call. monitored_barrier names the missing ranks itself."""
    recorded = {name for names in recording_group.METHODS.values() for name in names} | {"send", "recv"}
    others = {
        "abort", "boxed", "get_backend", "get_group_store", "get_reconfigure_handle", "merge_remote_group",
        "monitored_barrier", "name", "new_window", "rank", "set_timeout",
        "reconfigure", "recv_anysource", "shutdown", "size", "split_group", "unbox", "unboxed",
    }  # fmt: skip
    names = {name for name in dir(dist.ProcessGroup) if re.fullmatch(r"[a-z][a-z_]*(?<!_hook)", name)}
    calls = {name for name in names if not isinstance(inspect.getattr_static(dist.ProcessGroup, name), property)}
    assert calls - recorded - others == set()
