"""What is said of faults: registry's errors, engines' last log lines, the driver's messages.

Texts are those of containerd 2, PyTorch 2.8, safetensors and driver 570.
"""

from collections.abc import Sequence

from modelserve.api.spec import EngineType
from servelab.engine.surfaces import lastwords

# Sentences of NVIDIA's list of XID errors.
XIDS = {
    13: "Graphics Engine Exception",
    31: "MMU Fault",
    43: "GPU stopped processing",
    45: "Preemptive cleanup, due to previous errors",
    48: "Double Bit ECC Error",
    63: "Row remapping event",
    64: "Row remapping failure",
    74: "NVLink Error",
    79: "GPU has fallen off the bus.",
    94: "Contained ECC error",
    95: "Uncontained ECC error",
    119: "Timeout waiting for RPC from GSP",
}
# After these the device is of no use until it is reset: the device plugin takes it away. It leaves
# 13, 31, 43, 45, 68 and 109 to the application (k8s-device-plugin, health.go).
OF_APPLICATIONS = (13, 31, 43, 45, 68, 109)


def registry_error(image: str) -> str:
    """What containerd says of a registry that fails."""
    return (
        f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": '
        "unexpected status from HEAD request: 503 Service Unavailable"
    )


def corrupt_weights(engine: EngineType) -> Sequence[str]:
    """A checkpoint whose header cannot be read."""
    return lastwords.not_started(
        engine,
        "safetensors_rust.SafetensorError: Error while deserializing header: "
        "InvalidHeaderDeserialization",
    )


def out_of_gpu_memory(engine: EngineType, memory_gib: float) -> Sequence[str]:
    """An allocation that finds no room on the GPU."""
    return lastwords.not_started(engine, lastwords.out_of_memory(memory_gib))


def cuda_error(engine: EngineType) -> Sequence[str]:
    """What an engine says whose GPU fails while it serves."""
    return lastwords.died(engine, "torch.AcceleratorError: CUDA error: unspecified launch failure")


def no_gpu(engine: EngineType) -> Sequence[str]:
    """What an engine says that starts on a GPU which is gone."""
    unknown = (
        "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, "
        "e.g. changing env variable CUDA_VISIBLE_DEVICES after program start. Setting the "
        "available devices to be zero."
    )
    inferred = ("RuntimeError: Failed to infer device type",)
    return (unknown, *(inferred if engine is EngineType.VLLM else ()))


def xid(number: int, bus: str = "0000:1b:00") -> str:
    """The driver's line in the kernel log."""
    return f"NVRM: Xid (PCI:{bus}): {number}, {XIDS.get(number, 'unknown error')}"


def breaks_gpu(number: int) -> bool:
    """Whether the device plugin calls the GPU unhealthy after it."""
    return number not in OF_APPLICATIONS
