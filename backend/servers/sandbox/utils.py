"""Small helpers of those who fill in sandbox requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

CPU_CAP_ENV_VARS = (
    "OMP_NUM_THREADS",
    "OMP_THREAD_LIMIT",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "LOKY_MAX_CPU_COUNT",
    "PYTHON_CPU_COUNT",
    "RAYON_NUM_THREADS",
    "UV_THREADPOOL_SIZE",
    "GOMAXPROCS",
    "CARGO_BUILD_JOBS",
    "CMAKE_BUILD_PARALLEL_LEVEL",
    "MAX_JOBS",
    "RUST_TEST_THREADS",
    "PYTEST_XDIST_AUTO_NUM_WORKERS",
    "DJANGO_TEST_PROCESSES",
)
"""Variables that tell libraries and build tools how many processors to use. A container sees all of the host's, whatever its share."""


def cpu_cap_env(cpu: float | None) -> dict[str, str]:
    """Each of `CPU_CAP_ENV_VARS` set to `cpu` rounded down, at least 1; nothing without a limit."""
    return {} if cpu is None else dict.fromkeys(CPU_CAP_ENV_VARS, str(max(1, int(cpu))))


def rewrite_image(image: str | None, rewrites: Iterable[Mapping[str, str]] | None) -> str | None:
    """`image` with the first matching prefix replaced: `rewrites` are `{"from": prefix, "to": prefix}` in order of preference; None stays."""
    for rewrite in rewrites or ():
        if image is not None and image.startswith(rewrite["from"]):
            return rewrite["to"] + image.removeprefix(rewrite["from"])
    return image
