"""Two operators under torch.profiler: ``layer_norm``, and one whose CUDA kernel is compiled here.

The chain is read from the exported trace. An operator of torch's calls others, on one thread, inside its time. The
innermost calls CUDA, which gives the launch a number, the correlation; the kernel has the same one.
"""

import importlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from ringzero.measure.gpu.clocks import synchronize
from ringzero.measure.gpu.parts import Skip

CALLS = 5
LONGEST = 12  # rows of the table
ON_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
RUNTIME = ("cuda_runtime", "cuda_driver")


def layer_norm(device: str, tokens: int = 8192, width: int = 4096) -> Iterator[dict[str, Any]]:
    """Rows "chain" of the last call of ``layer_norm`` forward, and rows "operator" of the table of all calls."""
    x = torch.randn(tokens, width, device=device, requires_grad=True)
    weight, bias = (torch.ones(width, device=device, requires_grad=True) for _ in range(2))

    def work() -> None:
        torch.nn.functional.layer_norm(x, (width,), weight, bias).sum().backward()

    yield from of(work, "aten::layer_norm", device)


def of(work: Callable[[], object], name: str, device: str) -> Iterator[dict[str, Any]]:
    """Profile ``work``. Rows of the chain below the operator ``name``, then of the operators, longest first.

    A row "chain" has ``depth``, ``name``, ``where``, and ``starts_us``, after the operator's call, and ``takes_us``. A
    row "operator" has times of all calls in µs, and ``device_bytes``: memory that its calls got and did not give back.
    """
    activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * (device == "cuda")
    for _ in range(3):
        work()
    synchronize(device)
    with profile(activities=activities, profile_memory=True, record_shapes=True, acc_events=True) as profiled:
        for _ in range(CALLS):
            work()
        synchronize(device)
    with tempfile.TemporaryDirectory(prefix="rz-gpu-") as folder:
        path = Path(folder, "trace.json")
        profiled.export_chrome_trace(str(path))
        yield from chain(json.loads(path.read_text())["traceEvents"], name)
    for event in sorted(profiled.key_averages(), key=lambda e: (-e.self_device_time_total, -e.self_cpu_time_total))[
        :LONGEST
    ]:
        yield {
            "what": "operator",
            "name": event.key,
            "calls": event.count,
            "device_us": event.device_time_total,
            "self_device_us": event.self_device_time_total,
            "cpu_us": event.cpu_time_total,
            "self_cpu_us": event.self_cpu_time_total,
            "device_bytes": event.self_device_memory_usage,
            "cpu_bytes": event.self_cpu_memory_usage,
        }


def chain(events: Sequence[dict[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    """From a trace's ``events``: the last call of ``name``, what it called, and the kernels that this launched.

    In the first one the profiler takes memory for what the GPU will tell it, which takes milliseconds.

    An operator is inside another by its times. CUDA's times come from another clock, so a call of CUDA belongs to the
    operator whose "External id" it has.
    """
    operators = [event for event in events if event.get("cat") == "cpu_op"]
    top = max((each for each in operators if each["name"] == name), key=lambda each: each["ts"], default=None)
    if top is None:
        raise ValueError(f"the trace has no {name}")
    inside = [each for each in operators if each["tid"] == top["tid"] and _holds(top, each)]
    inside.sort(key=lambda each: (each["ts"], -each["dur"]))
    of_cuda = [event for event in events if event.get("cat") in RUNTIME]
    kernels = {event["args"].get("correlation"): event for event in events if event.get("cat") in ON_DEVICE}
    for index, each in enumerate(inside):
        depth = sum(_holds(above, each) for above in inside[:index])
        yield _row(each, top, depth, "operator")
        number = each.get("args", {}).get("External id")
        for call in of_cuda:
            if number is not None and call["args"].get("External id") == number:
                yield _row(call, top, depth + 1, "CUDA call")
                if kernel := kernels.get(call["args"].get("correlation")):
                    yield _row(kernel, top, depth + 2, "GPU")


def _row(event: dict[str, Any], top: dict[str, Any], depth: int, where: str) -> dict[str, Any]:
    row = {"what": "chain", "depth": depth, "where": where, "name": event["name"]}
    return row | {"starts_us": round(event["ts"] - top["ts"], 3), "takes_us": event["dur"]}


def _holds(outer: dict[str, Any], inner: dict[str, Any]) -> bool:
    return outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]


# ---- an operator of one's own

OPERATOR = r"""
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>
#include <stdexcept>
using torch::stable::Tensor;

void sgd(Tensor p, Tensor g, Tensor m, double rate, double momentum);

STABLE_TORCH_LIBRARY(course, library) {
  library.def("sgd(Tensor(a!) p, Tensor g, Tensor(b!) m, float rate, float momentum) -> ()");
}
STABLE_TORCH_LIBRARY_IMPL(course, DEVICE, library) {
  library.impl("sgd", TORCH_BOX(&sgd));
}
"""

CUDA = r"""
__global__ void sgd_kernel(float* p, const float* g, float* m, long n, float rate, float momentum) {
  long i = blockIdx.x * static_cast<long>(blockDim.x) + threadIdx.x;
  if (i < n) {
    m[i] = momentum * m[i] + g[i];
    p[i] -= rate * m[i];
  }
}

void sgd(Tensor p, Tensor g, Tensor m, double rate, double momentum) {
  void* stream = nullptr;  // torch's current one, which the tensors' other work is in
  if (aoti_torch_get_current_cuda_stream(p.get_device(), &stream)) throw std::runtime_error("torch has no stream");
  long n = p.numel();
  sgd_kernel<<<(n + 255) / 256, 256, 0, static_cast<cudaStream_t>(stream)>>>(
      static_cast<float*>(p.data_ptr()), static_cast<const float*>(g.data_ptr()),
      static_cast<float*>(m.data_ptr()), n, static_cast<float>(rate), static_cast<float>(momentum));
  if (cudaError_t error = cudaGetLastError()) throw std::runtime_error(cudaGetErrorString(error));
}
"""

CPU = r"""
void sgd(Tensor p, Tensor g, Tensor m, double rate, double momentum) {
  float* parameter = static_cast<float*>(p.data_ptr());
  float* sum = static_cast<float*>(m.data_ptr());
  const float* gradient = static_cast<const float*>(g.data_ptr());
  for (long i = 0, n = p.numel(); i < n; ++i) {
    sum[i] = static_cast<float>(momentum) * sum[i] + gradient[i];
    parameter[i] -= static_cast<float>(rate) * sum[i];
  }
}
"""


def kernel(device: str, size: int = 2**26) -> Iterator[dict[str, Any]]:
    """SGD with momentum as one kernel and as torch's three: chains and operators, as ``of`` gives them, of both.

    Raises ``Skip`` without a compiler, RuntimeError where the two differ.
    """
    if " " in torch.__file__:
        raise Skip(f"torch is in {Path(torch.__file__).parent}, and its build of kernels takes no space in a name")
    if missing := missing_tools(device):
        raise Skip(f"no {' and no '.join(missing)} here; nvcc of torch's CUDA, c++ and ninja compile the kernel")
    with tempfile.TemporaryDirectory(prefix="rz-gpu-") as folder:
        build(device, Path(folder))
        ops = torch.ops.course
        p, g, m = (torch.full((size,), value, device=device) for value in (1.0, 2.0, 0.5))
        others = p.clone(), g, m.clone()
        ops.sgd(p, g, m, 0.1, 0.9)
        three_operators(*others)
        if not (torch.allclose(p, others[0]) and torch.allclose(m, others[2])):
            raise RuntimeError("the compiled operator and torch's three do not agree")
        yield from of(lambda: ops.sgd(p, g, m, 0.1, 0.9), "course::sgd", device)
        yield from of(lambda: three_operators(*others), "aten::mul_", device)


def three_operators(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor) -> None:
    """SGD with momentum, in place."""
    m.mul_(0.9).add_(g)
    p.add_(m, alpha=-0.1)


def source(device: str) -> tuple[str, str]:
    """The name of the file and its text."""
    text = OPERATOR.replace("DEVICE", device.upper()) + (CUDA if device == "cuda" else CPU)
    return f"course_sgd.{'cu' if device == 'cuda' else 'cpp'}", text


def missing_tools(device: str) -> list[str]:
    """What the operator cannot be compiled without, and is not here."""
    home = _cpp_extension().CUDA_HOME
    missing = [tool for tool in ("ninja", "c++") if shutil.which(tool) is None]
    return ["nvcc"] * (device == "cuda" and not (home and Path(home, "bin/nvcc").is_file())) + missing


def build(device: str, folder: Path) -> None:
    """Compile the operator and load it. torch's headers say what needs CUDA only where USE_CUDA is defined."""
    name, text = source(device)
    Path(folder, name).write_text(text)
    _cpp_extension().load(
        "course_sgd", str(Path(folder, name)), extra_cflags=["-O3"], extra_cuda_cflags=["-O3", "-DUSE_CUDA"],
        build_directory=str(folder), is_python_module=False,
    )  # fmt: skip


def _cpp_extension() -> Any:
    return importlib.import_module("torch.utils.cpp_extension")  # it looks for CUDA when it is imported
