"""All tests under here need the `mlir` extra and, of the dev extra, filecheck; without them they fail here, once."""

import filecheck  # noqa: F401

import tpu_mlir.dialects.adapter  # noqa: F401
