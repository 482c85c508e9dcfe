"""The processor that runs the programs: model, vector width, cache sizes."""

from pathlib import Path

from core.machine.cpu import cpu_flags, cpu_model
from core.records import Json

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")

_WIDTHS = (("avx512f", 512), ("avx2", 256), ("avx", 256), ("sse2", 128), ("asimd", 128))
"""CPU flag -> bits of its vector registers, widest first."""

_TOLD = ("avx512f", "avx2", "fma", "bmi1", "bmi2", "popcnt", "aes", "sha_ni", "sse4_2", "asimd", "sve")


def vector_bits(flags: tuple[str, ...]) -> int | None:
    """Return the widest vector register in bits; None when no flag tells."""
    return next((bits for flag, bits in _WIDTHS if flag in flags), None)


def hardware(caches: Path = _CACHES) -> dict[str, Json]:
    """Return what an advisor needs of this machine; a fact that the kernel does not show is null or left out."""
    flags = cpu_flags()
    sizes: dict[str, Json] = {}
    for index in sorted(caches.glob("index*")):
        if all((index / name).is_file() for name in ("level", "type", "size")):
            level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
            sizes[f"L{level} {kind}"] = size
    return {
        "cpu": cpu_model(),
        "vector_bits": vector_bits(flags),
        "features": [flag for flag in _TOLD if flag in flags],
        "caches": sizes,
    }
