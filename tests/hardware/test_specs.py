"""The shipped GPU specifications: they load, say where their constants come from, and agree with data sheets."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import yaml

from gpusched_env.errors import InputError
from gpusched_env.hardware import specs
from gpusched_env.hardware.power import board_power_w
from gpusched_env.hardware.specs import GpuSpec, TileCosts, gpu_names, load_gpu
from tests.refusals import refused

NOT_CONSTANTS = {"name", "summary", "sources"}


def test_every_file_of_a_gpu_is_found_by_its_name() -> None:
    files = (Path(specs.__file__).parent / "gpus").iterdir()
    assert gpu_names() == sorted(file.stem for file in files)


@pytest.mark.parametrize("name", gpu_names())
def test_every_constant_has_a_source(name: str) -> None:
    gpu = load_gpu(name)
    constants = set(GpuSpec.__struct_fields__) - NOT_CONSTANTS
    constants -= {name for name in ("instructions", "matrix_rates") if getattr(gpu, name) is None}
    # Where nobody has measured it, synchronising tiles costs nothing.
    constants -= {"tiles"} if gpu.tiles == TileCosts() else set()
    assert gpu.name == name
    assert set(gpu.sources) == constants
    assert all(len(source) >= 8 for source in gpu.sources.values())


@pytest.mark.parametrize("name", gpu_names())
def test_limits_are_consistent(name: str) -> None:
    limits = load_gpu(name).limits
    assert limits.threads == 32 * limits.warps
    assert limits.shared_bytes_per_block <= limits.shared_bytes - limits.shared_reserve
    assert limits.registers == (131_072 if name.startswith("mi") and name != "mi50" else 65_536)
    assert list(limits.carveouts) == sorted(set(limits.carveouts))
    if limits.carveouts:
        assert limits.carveouts[-1] == limits.shared_bytes


@pytest.mark.parametrize(
    ("name", "sms", "gb_per_s", "board_w"),
    [
        ("h100-sxm", 132, 3350, 700),
        ("h200-sxm", 132, 4800, 700),
        ("a100-sxm", 108, 2039, 400),
        ("v100-sxm", 80, 900, 300),
        ("rtx-3090", 82, 936, 350),
        ("k20m", 13, 208, 225),
        ("mi50", 60, 1024, 300),
        ("rtx-3080", 68, 760, 320),
        ("rtx-4090", 128, 1008, 450),
        ("rtx-2080-ti", 68, 616, 250),
        ("l40s", 142, 864, 350),
        ("h100-pcie", 114, 2039, 350),
        ("b200", 148, 7672, 1000),
        ("rtx-pro-6000", 188, 1597, 600),
        ("mi210", 104, 1638.4, 300),
        ("mi250", 104, 1638.4, 250),
        ("mi300x", 304, 5300, 750),
        ("tx2", 2, 58.3, 15),
    ],
)
def test_data_sheet_values(name: str, sms: int, gb_per_s: float, board_w: float) -> None:
    """All SMs busy at full DRAM bandwidth draw the board's power limit."""
    gpu = load_gpu(name)
    assert gpu.sms == sms
    assert gpu.dram_bytes_per_us == gb_per_s * 1e9 / 1e6
    assert board_power_w(gpu, gpu.sms, gpu.dram_bytes_per_us) == pytest.approx(board_w)
    assert board_power_w(gpu, 0, 0.0) == gpu.power.idle_w


@pytest.mark.parametrize(
    ("name", "half", "single"),
    [
        ("rtx-3080", 59.5, 29.8),
        ("rtx-4090", 165.2, 82.6),
        ("rtx-2080-ti", 53.8, 13.4),
        ("l40s", 362.0, 183.0),
        ("h100-pcie", 756.0, 378.0),
        ("b200", 2250.0, 1125.0),
        ("rtx-pro-6000", 480.0, 240.0),
        ("mi210", 181.0, 45.3),
        ("mi250", 362.1 / 2, 90.5 / 2),
        ("mi300x", 1307.4, 653.7),
    ],
)
def test_matrix_rates_are_those_of_data_sheets(name: str, half: float, single: float) -> None:
    gpu = load_gpu(name)
    assert gpu.matrix_rates is not None
    clocks = gpu.sms * gpu.clock_mhz * 1e-6
    found = gpu.matrix_rates.half * clocks, gpu.matrix_rates.single * clocks
    assert found == pytest.approx((half, single), rel=0.015)


def test_priorities_and_queues_of_the_published_systems() -> None:
    assert load_gpu("h100-sxm").priorities == 6
    assert load_gpu("tx2").priorities == 2
    assert load_gpu("rtx-3090").priorities == 3
    assert load_gpu("k20m").channels == 32
    assert load_gpu("mi50").channels == 8
    assert load_gpu("tx2").copies.engines == 1


def test_unknown_gpu_suggests_the_nearest() -> None:
    with refused(InputError, "GPU 'h100sxm'", "did you mean 'h100-sxm'"):
        load_gpu("h100sxm")


def test_wrong_files_name_the_file_and_the_field(tmp_path: Path) -> None:
    folder = tmp_path / "gpus"
    folder.mkdir()
    data = yaml.safe_load(yaml.safe_dump(msgspec.to_builtins(load_gpu("v100-sxm"))))
    bad = {
        "negative": data | {"sms": -1},
        "unknown": data | {"smz": 80},
        "nested": data | {"timing": data["timing"] | {"slice_us": 0}},
        "missing": {key: value for key, value in data.items() if key != "power"},
    }
    for name, content in bad.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
    (folder / "broken.yaml").write_text("sms: [1, 2")
    for name, expected in [
        ("negative", r"gpus/negative\.yaml: sms: "),
        ("unknown", r"gpus/unknown\.yaml: .*`smz`; did you mean 'sms'"),
        ("nested", r"gpus/nested\.yaml: timing\.slice_us: "),
        ("missing", r"gpus/missing\.yaml: .*`power`; required are name, summary"),
        ("broken", r"gpus/broken\.yaml: "),
    ]:
        with pytest.raises(InputError, match=expected):
            load_gpu(folder / f"{name}.yaml")


def test_a_file_of_ones_own_is_a_gpu(tmp_path: Path) -> None:
    data = msgspec.to_builtins(load_gpu("v100-sxm"))
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(data | {"name": "mine", "memory_bytes": "64e9"}).replace("'64e9'", "64e9"))
    assert load_gpu(path) == load_gpu(str(path))
    assert load_gpu(path).memory_bytes == 64_000_000_000
    path.write_text(yaml.safe_dump(data | {"sms": 40, "sm_order": "linear"}))
    with refused(InputError, "mine.yaml", "'v100-sxm'"):
        load_gpu(path)
    with refused(InputError, "none.yaml", "read"):
        load_gpu(tmp_path / "none.yaml")


def test_a_changed_number_of_sms_wants_an_order_of_its_own() -> None:
    h100 = load_gpu("h100-sxm")
    with refused(ValueError, "sm_order", "132 numbers", "0..65 once"):
        msgspec.structs.replace(h100, sms=66)
    assert msgspec.structs.replace(h100, sms=66, sm_order="linear").sms == 66


def test_a_board_may_be_left_out_where_only_one_fits() -> None:
    assert load_gpu("v100") is load_gpu("v100-sxm")
