"""Networks as data, and what a schedule costs on them. No torch."""

from ringzero.network.choose import (
    PROTOCOLS,
    best_algorithm,
    candidates,
    crossovers,
    nccl_protocols,
    protocol_factors,
)
from ringzero.network.machines import (
    dgx_a100,
    dgx_b200,
    dgx_b300,
    dgx_h100,
    emulated_cluster,
    laptop,
    summit,
)
from ringzero.network.pricing import Price, Step, coefficients, critical_path, price
from ringzero.network.topology import Topology, bus, cluster, fully_connected, mesh, switch, torus

__all__ = [
    "PROTOCOLS",
    "Price",
    "Step",
    "Topology",
    "best_algorithm",
    "bus",
    "candidates",
    "cluster",
    "coefficients",
    "critical_path",
    "crossovers",
    "dgx_a100",
    "dgx_b200",
    "dgx_b300",
    "dgx_h100",
    "emulated_cluster",
    "fully_connected",
    "laptop",
    "mesh",
    "nccl_protocols",
    "price",
    "protocol_factors",
    "summit",
    "switch",
    "torus",
]
