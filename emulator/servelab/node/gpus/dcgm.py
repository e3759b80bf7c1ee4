"""What NVIDIA's dcgm-exporter exports of a node's GPUs, with its names, labels and help texts."""

from collections.abc import Callable, Sequence

from servelab.node.gpus import readings, smi

# (name, type, help, value), in the order of the exporter's default-counters.csv.
_Series = tuple[str, str, str, Callable[[readings.Reading], float]]
SERIES: Sequence[_Series] = (
    ("SM_CLOCK", "gauge", "SM clock frequency (in MHz).", lambda r: r.sm_mhz),
    ("MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", lambda r: r.memory_mhz),
    ("GPU_TEMP", "gauge", "GPU temperature (in C).", lambda r: r.temperature_c),
    ("POWER_USAGE", "gauge", "Power draw (in W).", lambda r: round(r.power_w, 3)),
    ("GPU_UTIL", "gauge", "GPU utilization (in %).", lambda r: round(r.activity.busy * 100)),
    (
        "MEM_COPY_UTIL",
        "gauge",
        "Memory utilization (in %).",
        lambda r: round(r.activity.traffic * 100),
    ),
    ("XID_ERRORS", "gauge", "Value of the last XID error encountered.", lambda r: r.xid),
    ("FB_FREE", "gauge", "Framebuffer memory free (in MiB).", lambda r: r.free_bytes // smi.MIB),
    ("FB_USED", "gauge", "Framebuffer memory used (in MiB).", lambda r: r.used_bytes // smi.MIB),
    (
        "FB_RESERVED",
        "gauge",
        "Framebuffer memory reserved (in MiB).",
        lambda r: r.reserved_bytes // smi.MIB,
    ),
)
# Profiling metrics have another prefix.
PROFILING: Sequence[_Series] = (
    (
        "PROF_GR_ENGINE_ACTIVE",
        "gauge",
        "Ratio of time the graphics engine is active.",
        lambda r: round(r.activity.busy, 6),
    ),
    (
        "PROF_PIPE_TENSOR_ACTIVE",
        "gauge",
        "Ratio of cycles the tensor (HMMA) pipe is active.",
        lambda r: round(r.activity.tensor, 6),
    ),
    (
        "PROF_DRAM_ACTIVE",
        "gauge",
        "Ratio of cycles the device memory interface is active sending or receiving data.",
        lambda r: round(r.activity.traffic, 6),
    ),
)


def render(driver: str, found: Sequence[tuple[str, readings.Reading]]) -> str:
    """The exposition of GPUs, each with the name of its node."""
    named = [(f"DCGM_FI_DEV_{name}", kind, text, of) for name, kind, text, of in SERIES]
    named += [(f"DCGM_FI_{name}", kind, text, of) for name, kind, text, of in PROFILING]
    lines = []
    for name, kind, text, value in named:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{{{_labels(node, driver, r)}}} {value(r):.10g}" for node, r in found]
    return "\n".join([*lines, ""]) if found else ""


def _labels(node: str, driver: str, found: readings.Reading) -> str:
    labels = {
        "gpu": str(found.device.index),
        "UUID": found.device.uuid,
        "pci_bus_id": found.device.bus_id,
        "device": f"nvidia{found.device.index}",
        "modelName": found.gpu.title,
        "Hostname": node,
        "DCGM_FI_DRIVER_VERSION": driver,
    }
    if (holder := found.holder) is not None:
        labels |= {
            "container": holder.container,
            "namespace": holder.namespace,
            "pod": holder.pod,
        }
    return ",".join(f'{key}="{value}"' for key, value in labels.items())
