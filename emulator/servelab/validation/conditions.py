"""How each publisher measured, where more is known than the point itself says.

From the texts under ``sources`` in ``points.yaml``, and from the scripts and data sets of the
publishers. A source that is not here: all requests have the stated lengths, over HTTP.
"""

import math
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from modelserve.engines.types import EngineType

# Requests of an open-loop run that does not say how many.
ONLINE_REQUESTS = 300
# A closed loop sends so many requests per client (InferenceMAX: concurrency times ten).
REQUESTS_PER_CLIENT = 10
_NORMAL = statistics.NormalDist()
# Of the lengths below: which share of the prompts is not longer.
_SHARES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.9, 0.99, 1.0)


@dataclass(frozen=True, slots=True)
class Chat:
    """Prompts of a data set, and answers as a model gives them: log-normal, cut at a limit.

    ``prompts`` are tokens at ``_SHARES``, to which the chat template adds; the answers' mean is
    what the runs report (tokens per second times seconds, over requests).
    """

    prompts: Sequence[float]
    template_tokens: int
    answer_median: float
    answer_limit: int
    max_model_tokens: int
    answer_sigma: float = 0.6

    def lengths(self, count: int, rng: random.Random) -> list[tuple[int, int]]:
        """Evenly over both distributions, in random order and random pairs."""
        shares = [(at + 0.5) / count for at in range(count)]
        prompts = [round(self._prompt(share)) + self.template_tokens for share in shares]
        answers = [self._answer(share) for share in shares]
        rng.shuffle(prompts)
        rng.shuffle(answers)
        return list(zip(prompts, answers, strict=True))

    def _prompt(self, share: float) -> float:
        at = next(at for at, most in enumerate(_SHARES[1:]) if share <= most)
        part = (share - _SHARES[at]) / (_SHARES[at + 1] - _SHARES[at])
        return self.prompts[at] + part * (self.prompts[at + 1] - self.prompts[at])

    def _answer(self, share: float) -> int:
        spread = math.exp(self.answer_sigma * _NORMAL.inv_cdf(share))
        return max(1, round(min(self.answer_limit, self.answer_median * spread)))


@dataclass(frozen=True, slots=True)
class Conditions:
    """``shortest`` is a share of the stated length from which on lengths are uniform.

    ``chats`` by the stated prompt length. ``fp8_kv`` are weight formats with an fp8 KV cache, in
    runs of ``fp8_kv_kinds`` if that names any. ``requests`` are those of a run at full load, by the
    stated lengths; with ``tuned_sequences`` they are that many, or as many as the KV cache holds
    to their end, and all run at once. ``http`` off: measured in the engine's own process.
    ``asynchronous``: vLLM was told to schedule so. ``divides_prompts``: TensorRT-LLM was.
    ``mean_first_token``: its time to first token under load is the mean, not the median.
    """

    shortest: float = 1.0
    chats: Mapping[int, Chat] = field(default_factory=dict)
    fp8_kv: Sequence[str] = ()
    fp8_kv_kinds: Sequence[str] = ()
    max_batched_tokens: Mapping[EngineType, int] = field(default_factory=dict)
    max_model_tokens: int | None = None
    requests: Mapping[tuple[int, int], int] = field(default_factory=dict)
    tuned_sequences: int | None = None
    http: bool = True
    asynchronous: bool = False
    divides_prompts: bool = False
    mean_first_token: bool = False

    def has_fp8_kv(self, weights: str, kind: str) -> bool:
        """Whether that kind of run with weights of that format has an fp8 KV cache."""
        return weights in self.fp8_kv and (not self.fp8_kv_kinds or kind in self.fp8_kv_kinds)

    def chat(self, input_tokens: int) -> Chat | None:
        """The data set of that stated prompt length, if the source has one."""
        return self.chats.get(input_tokens)

    def lengths(
        self, input_tokens: int, output_tokens: int, count: int, rng: random.Random
    ) -> list[tuple[int, int]]:
        """Prompt and answer tokens of ``count`` requests."""
        prompt, answer = max(1, input_tokens), max(1, output_tokens)
        chat = self.chat(input_tokens)
        if chat is not None:
            return chat.lengths(count, rng)
        if self.shortest < 1.0:
            return [(self._uniform(prompt, rng), self._uniform(answer, rng)) for _ in range(count)]
        return [(prompt, answer)] * count

    def _uniform(self, tokens: int, rng: random.Random) -> int:
        return rng.randint(max(1, math.ceil(tokens * self.shortest)), tokens)


# Suites A, B, E, G: sharegpt_standard_v1, 343-352 tokens per answer, --max-model-len 4096.
_STANDARD = Chat((66, 71, 106, 209, 360, 468, 590, 592), 11, 355, 512, 4096)
# Suite F: sharegpt_edge_v1 and the template of Qwen 2.5, 210 tokens per answer.
_EDGE = Chat((18, 22, 32, 54, 102, 154, 195, 198), 30, 250, 256, 2048)
# Requests by lengths, as its page on preparing a data set has them (own knowledge, not looked up).
_TRT_REQUESTS = {
    (128, 128): 30_000,
    (128, 2048): 3000,
    (128, 4096): 1500,
    (500, 2000): 3000,
    (1000, 1000): 3000,
    (1000, 2000): 1500,
    (1024, 2048): 1500,
    (2048, 128): 3000,
    (2048, 2048): 1500,
    (5000, 500): 1500,
    (20_000, 2000): 1000,
}
_KNOWN: Mapping[str, Conditions] = {
    # benchmarks/70b_fp8_h200_slurm.sh and the like: kv-cache-dtype fp8 with fp8 and fp4 weights,
    # async-scheduling, max-num-batched-tokens 8192; SGLang with --chunked-prefill-size 32768;
    # trtllm-serve with --max_num_tokens of the longest request. That the time to first token is a
    # mean is inferred: it grows with the clients as one does that has the burst of the start in it.
    "imax": Conditions(
        shortest=0.8,
        fp8_kv=("fp8", "nvfp4"),
        max_batched_tokens={
            EngineType.VLLM: 8192,
            EngineType.SGLANG: 32_768,
            EngineType.TENSORRT_LLM: 2068,
        },
        asynchronous=True,
        mean_first_token=True,
    ),
    # loadgen.py and runner.py: the engine is called in the process; --max-model-len 30208 for the
    # long prompts of suite D.
    "accelmark": Conditions(chats={280: _STANDARD, 95: _EDGE}, max_model_tokens=30_208, http=False),
    "trt-0.5": Conditions(http=False),
    # trtllm-bench divides prompts and runs in the process.
    "trt-0.17": Conditions(requests=_TRT_REQUESTS, http=False, divides_prompts=True),
    "trt-1.0": Conditions(requests=_TRT_REQUESTS, http=False, divides_prompts=True),
    # docs/dev-docker/README.md: `vllm bench throughput --kv-cache-dtype fp8 --num-prompts 1500
    # --max-num-seqs 1500`, fewer where the KV cache would not hold them, and `vllm bench latency`
    # with a 16-bit cache, both in the process.
    "rocm": Conditions(
        fp8_kv=("fp8",), fp8_kv_kinds=("saturation",), tuned_sequences=1500, http=False
    ),
    # Its latency job runs in the process.
    "vllm-ci": Conditions(http=False),
}


def of(source: str) -> Conditions:
    """The conditions of a source, by its key."""
    return _KNOWN.get(source, Conditions())
