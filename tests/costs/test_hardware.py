"""The hardware table: dense, per GPU, per direction, each row with its year and source; and the machines made of it."""

import pytest

from ringzero.costs.page import hardware as hw


def test_every_row_is_complete_dated_and_sourced():
    for name, row in hw.GPUS:
        assert 2016 <= row["year"] <= 2026, name
        assert len(row["source"]) > 10, name
        assert row["memory_kind"][:3] in ("HBM", "GDD"), name
        assert min(row["tflops"], row["memory_gb"], row["memory_gb_per_s"]) > 0, name
        hw.pcie(row["pcie_generation"])
    for _, row in hw.NODES:
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
    rates = [rate for _, rate in hw.INFINIBAND_GB_PER_S]
    assert rates == sorted(rates)
    assert [hw.pcie(g) for g in (1, 2)] == [4.0, 8.0]
    assert [hw.pcie(g + 1) / hw.pcie(g) for g in (3, 4, 6)] == [2.0, 2.0, 2.0]
    assert hw.pcie(5, lanes=4) == hw.pcie(5) / 4
    assert hw.infiniband("FDR") == pytest.approx(54.54 / 8, abs=1e-3)


def test_peaks_from_the_parts_of_a_gpu():
    """Tensor cores and clocks of NVIDIA's whitepapers; lanes of NVLink 1 to 4, of 8, 8, 4 and 2 lanes a link."""
    for name, clock, fma, cores in [("V100", 1.53e9, 64, 640), ("A100", 1.41e9, 256, 432), ("H100", 1.83e9, 512, 528)]:
        assert 2 * fma * cores * clock == pytest.approx(hw.peak_flops(name), rel=0.003), name
    for name, lane, lanes, links in [
        ("P100", 2.5, 8, 4),
        ("V100", 3.125, 8, 6),
        ("A100", 6.25, 4, 12),
        ("H100", 12.5, 2, 18),
    ]:
        assert lane * lanes * links == hw.nvlink(name)


@pytest.mark.parametrize("name", ["H100", "h100", "NVIDIA H100 SXM5 80GB", "NVIDIA-H100-80GB", "NVIDIA H100 80GB HBM3"])
def test_a_gpu_is_found_by_the_names_it_goes_by(name):
    assert hw.gpu(name) is dict(hw.GPUS)["H100"]
    assert hw.gpu("NVIDIA H100 PCIe") is dict(hw.GPUS)["H100 PCIe"]
    assert hw.gpu("Tesla V100-SXM2-32GB") is dict(hw.GPUS)["V100"]
    assert hw.gpu("NVIDIA A100-SXM4-40GB") is dict(hw.GPUS)["A100 40GB"]
    assert hw.gpu("NVIDIA A100-SXM4-80GB") is dict(hw.GPUS)["A100"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hw.gpu("H1000"), "GPU is 'H1000'; it is one of P100, V100"),
        (lambda: hw.nvlink("GB200 NVL72"), "GPU is 'GB200 NVL72'; it"),
        (lambda: hw.node("DGX H1000"), "node is 'DGX H1000'; it is one of DGX A100, DGX H100"),
        (lambda: hw.pcie(9), "PCIe generation is 9; it is one of 1, 2, 3"),
        (lambda: hw.infiniband("LDR"), "InfiniBand generation is 'LDR'; it is one of SDR"),
    ],
)
def test_what_is_not_in_the_table_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
