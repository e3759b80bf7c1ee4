"""What the core asks of the catalogue's laws."""

import pytest

from modelserve.api.spec import EngineType
from modelserve.catalog import gpus, models
from modelserve.engines import steplaw


@pytest.mark.parametrize("engine", EngineType)
@pytest.mark.parametrize("sequences", [1, 8, 200])
@pytest.mark.parametrize("tokens_each", [1, 100, 4000])
def test_a_laws_terms_give_its_decoding_steps(
    engine: EngineType, sequences: int, tokens_each: int
) -> None:
    model, gpu = models.find("meta-llama/Llama-3.1-8B-Instruct"), gpus.find("h100-sxm")
    law = steplaw.StepLaw.of(model, gpu, 1, engine=engine)
    terms = law.decode_terms(sequences)
    assert terms is not None
    fixed_s, per_token_s, least_s = terms
    context = sequences * tokens_each
    assert max(fixed_s + per_token_s * context, least_s) == pytest.approx(
        law.step_s(sequences, context)
    )
