"""The hardware table: dense, per GPU, per direction, each row with its year and source; and the machines made of it."""

import ast
from pathlib import Path

import pytest

from ringzero.costs import hardware as hw


def test_every_row_is_complete_dated_and_sourced():
    for name, row in hw.GPUS.items():
        assert 2016 <= row["year"] <= 2026, name
        assert len(row["source"]) > 10, name
        assert min(row["tflops"], row["memory_gb"], row["memory_gb_per_s"]) > 0, name
        hw.pcie(row["pcie_generation"])
    for row in hw.NODES.values():
        assert hw.nvlink(row["gpu"]) > hw.infiniband(row["infiniband"]) > 0
        assert row["source"]


def test_figures_that_are_often_quoted_double():
    """Dense, not sparse; one direction, not both; one GPU, not a server of eight."""
    assert hw.peak_flops("H100") == 989e12  # not 1,979
    assert hw.peak_flops("B200") == hw.peak_flops("B300") == 2.25e15  # not 72 PFLOP/s, nor 4.5
    assert hw.nvlink("H100") == 450  # not 900
    assert hw.pcie(5) == pytest.approx(63, abs=0.1)  # not 128
    assert hw.infiniband("NDR") == 50  # 400 Gbit/s


def test_generations_grow():
    rates = list(hw.INFINIBAND_GB_PER_S.values())
    assert rates == sorted(rates)
    assert [hw.pcie(g) for g in (1, 2)] == [4.0, 8.0]
    assert [hw.pcie(g + 1) / hw.pcie(g) for g in (3, 4)] == [2.0, 2.0]
    assert hw.infiniband("FDR") == pytest.approx(54.54 / 8, abs=1e-3)


@pytest.mark.parametrize("name", ["H100", "h100", "NVIDIA H100 SXM5 80GB", "NVIDIA-H100-80GB"])
def test_a_gpu_is_found_by_the_names_it_goes_by(name):
    assert hw.gpu(name) is hw.GPUS["H100"]
    assert hw.gpu("NVIDIA H100 PCIe") is hw.GPUS["H100 PCIe"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hw.gpu("H1000"), "no GPU 'H1000' in the table; it has P100, V100"),
        (lambda: hw.nvlink("GB200 NVL72"), "no GPU 'GB200 NVL72'"),
        (lambda: hw.pcie(9), "no PCIe generation 9 in the table; it has 1, 2, 3"),
        (lambda: hw.infiniband("LDR"), "no InfiniBand 'LDR' in the table; it has SDR"),
    ],
)
def test_what_is_not_in_the_table_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_table_is_plain_enough_for_a_web_page():
    """MicroPython runs it there: it imports nothing."""
    tree = ast.parse(Path(hw.__file__).read_text())
    assert not [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
