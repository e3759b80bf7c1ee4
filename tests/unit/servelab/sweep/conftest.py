"""A small scenario as text, and its document."""

import pytest

from servelab.sim import reading

TEXT = """\
pools: [{gpu: NVIDIA-H100-80GB-HBM3}]
models:
  - spec:
      model: {name: meta-llama/Llama-3.1-8B-Instruct}
      gpu: {product: NVIDIA-H100-80GB-HBM3}
      scaling: {maxReplicas: 4}
      coldStart: {imageSize: 1MB, warmUpSeconds: 5}
    traffic:
      - poisson: {perSecond: 1, seconds: 30}
        output: 20
tailSeconds: 60
stepJitter: 0
seed: 5
"""


@pytest.fixture
def document() -> reading.Document:
    return reading.load(TEXT, "small.yaml")
