"""What the hardware can do at best: peaks of GPUs, NVLink, PCIe and InfiniBand, as their makers state them.

    gpu("H100")["tflops"]            989 TFLOP/s, 16-bit, tensor cores, dense
    nvlink("H100")                   450 GB/s, one direction
    pcie(5), infiniband("NDR")       63 and 50 GB/s, one direction

Three habits make vendors' figures comparable, and every number here follows them. Dense: a data sheet's "with
sparsity" is twice as much. Per GPU: 72 PFLOP/s is a server of eight B300, in 8 bits, with sparsity. Per direction: a
link's "900 GB/s" counts both ways, a PCIe slot's 63 GB/s one. GB is 1e9 bytes. As of August 2026.
"""

from ringzero.costs.page.inputs import known, positive


def _gpu(year, tflops, nvlink, memory, kind, memory_bandwidth, pcie, source):
    return {
        "year": year,  # announced
        "tflops": tflops,  # TFLOP/s in fp16 or bf16, dense, on tensor cores where there are any
        "nvlink_gb_per_s": nvlink,  # per direction, all of the GPU's links together; 0 where it has none
        "memory_gb": memory,  # the largest version, unless the name says how much
        "memory_kind": kind,
        "memory_gb_per_s": memory_bandwidth,
        "pcie_generation": pcie,  # x16
        "source": source,
    }


_TABLES = "stas00/ml-engineering, accelerator and network tables (744d01e, 2026-08-22)"

GPUS = (  # SXM modules unless the name says PCIe
    ("P100", _gpu(2016, 21.2, 80, 16, "HBM2", 732, 3, "no tensor cores; reviews, and NVLink 1 in " + _TABLES)),
    ("V100", _gpu(2017, 125, 150, 32, "HBM2", 900, 3, "whitepaper: 640 cores x 64 x 1.53 GHz; NVLink in " + _TABLES)),
    ("T4", _gpu(2018, 65, 0, 16, "GDDR6", 320, 3, "T4 comparisons of 2026: 65.13 TFLOP/s")),
    ("A100", _gpu(2020, 312, 300, 80, "HBM2e", 2000, 4, _TABLES + "; of memory NVIDIA's data sheet has 2,039 GB/s")),
    ("A100 40GB", _gpu(2020, 312, 300, 40, "HBM2", 1555, 4, "NVIDIA's data sheet of 2020, the first version")),
    ("A100 PCIe", _gpu(2020, 312, 300, 80, "HBM2e", 1935, 4, _TABLES + "; NVLink: a bridge of two cards")),
    ("A800", _gpu(2022, 312, 200, 80, "HBM2e", 2000, 4, "Reuters, 2022-11-08: an A100, NVLink at 400 GB/s both ways")),
    ("H100", _gpu(2022, 989, 450, 80, "HBM3", 3350, 5, _TABLES)),
    ("H100 PCIe", _gpu(2022, 756, 300, 80, "HBM2e", 2000, 5, _TABLES + "; NVLink: a bridge of two cards")),
    ("H800", _gpu(2023, 989, 200, 80, "HBM3", 3350, 5, "comparisons of 2025: an H100, NVLink at 400 GB/s both ways")),
    ("L40S", _gpu(2023, 362, 0, 48, "GDDR6", 864, 4, _TABLES)),
    ("H200", _gpu(2023, 989, 450, 141, "HBM3e", 4800, 5, _TABLES)),
    ("GH200", _gpu(2023, 989, 450, 96, "HBM3", 4000, 5, _TABLES + "; also with 144 GB")),
    ("B100", _gpu(2024, 1750, 900, 192, "HBM3e", 8000, 5, "announced in March 2024, half of 3.5 PFLOP/s sparse")),
    ("B200", _gpu(2024, 2250, 900, 180, "HBM3e", 8000, 5, _TABLES + "; 8 x 180 GB in NVIDIA's DGX B200 user guide")),
    ("GB200", _gpu(2024, 2500, 900, 186, "HBM3e", 8000, 6, _TABLES + "; one of a superchip's two GPUs")),
    ("B300", _gpu(2025, 2250, 900, 288, "HBM3e", 8000, 6, _TABLES)),
    ("GB300", _gpu(2025, 2500, 900, 288, "HBM3e", 8000, 6, _TABLES + "; one of a superchip's two GPUs")),
)  # fmt: skip

# Per direction, 16 lanes, after the line code (8b/10b, then 128b/130b, then 242 of 256 bytes of a flit, from
# PCIe 6 on). PCI-SIG base specifications 1.0 to 7.0.
PCIE_GB_PER_S = (
    (1, 2.5 * 16 / 8 * 8 / 10),
    (2, 5.0 * 16 / 8 * 8 / 10),
    (3, 8.0 * 16 / 8 * 128 / 130),
    (4, 16.0 * 16 / 8 * 128 / 130),
    (5, 32.0 * 16 / 8 * 128 / 130),
    (6, 64.0 * 16 / 8 * 242 / 256),
    (7, 128.0 * 16 / 8 * 242 / 256),
)

# Per direction, a port of four lanes, after the line code (8b/10b to QDR, 64b/66b from FDR10).
# InfiniBand Trade Association roadmap and XDR announcement (2023).
INFINIBAND_GB_PER_S = (
    ("SDR", 4 * 2.5 * 8 / 10 / 8),
    ("DDR", 4 * 5.0 * 8 / 10 / 8),
    ("QDR", 4 * 10.0 * 8 / 10 / 8),
    ("FDR10", 4 * 10.3125 * 64 / 66 / 8),
    ("FDR", 4 * 14.0625 * 64 / 66 / 8),
    ("EDR", 4 * 25.78125 * 64 / 66 / 8),
    ("HDR", 200 / 8),
    ("NDR", 400 / 8),
    ("XDR", 800 / 8),
)

# Seconds of a message before its first byte: a ring's hop with the protocol Simple in NCCL 2.30's cost model
# (src/graph/tuning.cc), over NVLink and over a network.
NVLINK_ALPHA, NETWORK_ALPHA = 3.4e-6, 14e-6

# The nodes that a topology is built from. Each GPU has an InfiniBand port to itself.
NODES = (
    (
        "DGX A100",
        {"gpu": "A100", "gpus": 8, "infiniband": "HDR", "source": "NVIDIA DGX SuperPOD H100: half its network"},
    ),
    (
        "DGX H100",
        {"gpu": "H100", "gpus": 8, "infiniband": "NDR", "source": "NVIDIA DGX BasePOD, core components (2025)"},
    ),
    ("DGX B200", {"gpu": "B200", "gpus": 8, "infiniband": "NDR", "source": "NVIDIA DGX B200 user guide (2025)"}),
    ("DGX B300", {"gpu": "B300", "gpus": 8, "infiniband": "XDR", "source": "DGX B300 in " + _TABLES}),
)


def gpu(name: str) -> dict:
    """The row of ``GPUS`` for a name such as "H100", "NVIDIA H100 80GB HBM3" (its driver's) or "h100 pcie".

    A size that has no row of its own, such as "80GB", does not count.
    Raises ValueError for a GPU that is not in the table.
    """
    words = name.upper().replace("-", " ").split()
    words = [w for w in words if w not in ("NVIDIA", "TESLA") and w[:3] not in ("SXM", "HBM")]
    for these in (words, [w for w in words if w[-2:] != "GB"]):
        for key, row in GPUS:
            if key.upper().split() == these:
                return row
    known(GPUS, name, "GPU")
    return dict(GPUS)[name]


def node(name: str) -> dict:
    """The row of ``NODES`` for a name such as "DGX H100". Raises ValueError for a node that is not in the table."""
    known(NODES, name, "node")
    return dict(NODES)[name]


def peak_flops(name: str) -> float:
    """FLOP/s of a GPU in fp16 or bf16, dense. Errors as for ``gpu``."""
    return gpu(name)["tflops"] * 1e12


def nvlink(name: str) -> float:
    """GB/s in each direction between a GPU and its NVLink neighbours or switch; 0 where it has no NVLink.

    Errors as for ``gpu``.
    """
    return gpu(name)["nvlink_gb_per_s"]


def pcie(generation: int, lanes: int = 16) -> float:
    """GB/s in each direction of a slot with so many lanes. Raises ValueError for a generation not in the table."""
    known(PCIE_GB_PER_S, generation, "PCIe generation")
    positive(lanes=lanes)
    return dict(PCIE_GB_PER_S)[generation] * lanes / 16


def infiniband(generation: str) -> float:
    """GB/s in each direction of a 4x port: "EDR", "HDR", ... Raises ValueError for one not in the table."""
    known(INFINIBAND_GB_PER_S, generation.upper(), "InfiniBand generation")
    return dict(INFINIBAND_GB_PER_S)[generation.upper()]
