"""An engine's /metrics with SGLang 0.5's names, labels, buckets; durations in emulated seconds.

The real server is several processes: a series is there once it was used, and none tells when it was
created. Left out is what nothing here foretells: its processes' CPU times and GPU memory.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from servelab.engine.assembly import EngineSpec
from servelab.engine.core.sequences import Output
from servelab.engine.metrics.exporting import Load
from servelab.engine.metrics.http import Http
from servelab.engine.metrics.series import Shared, SharedHistogram
from servelab.engine.metrics.sglang_requests import Requests, StartUp

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# Buckets and labels: sglang/srt/observability/metrics_collector.py of 0.5.23.
QUEUE_BOUNDS = (
    *(0.0, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 15.0, 20.0),
    *(30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0),
    *(800.0, 900.0, 1000.0, 1200.0, 1400.0, 1600.0, 1800.0, 2000.0, 2500.0, 3000.0),
)
# Decode steps between two figures of throughput.
DECODE_LOG_INTERVAL = 40
# Features that no engine here has: always nothing.
ABSENT = (
    *("num_grammar_queue_reqs", "swa_token_usage", "mamba_usage", "swa_available_tokens"),
    *("swa_evictable_tokens", "swa_used_tokens", "mamba_available_tokens"),
    *("mamba_evictable_tokens", "mamba_used_tokens", "spec_accept_length", "spec_accept_rate"),
    *("spec_cap_length", "spec_block_accept_length", "spec_num_steps", "spec_num_draft_tokens"),
    *("num_prefill_bootstrap_queue_reqs", "num_prefill_inflight_queue_reqs"),
    *("num_decode_prealloc_queue_reqs", "num_decode_transfer_queue_reqs"),
    *("num_decode_host_receive_queue_reqs", "num_decode_deferred_kv_release_reqs"),
    *("pending_prealloc_token_usage", "prealloc_full_token_usage", "prealloc_swa_token_usage"),
    *("utilization", "num_unique_running_routing_keys"),
)


def exporter(spec: EngineSpec, load: Load, created_unix_s: float) -> "Exporter":
    """The exporter of an engine."""
    return Exporter(spec, load)


class Exporter:
    """The metrics of one engine: fed with the core's outputs, read at each scrape."""

    content_type = CONTENT_TYPE

    def __init__(self, spec: EngineSpec, load: Load) -> None:
        self._load = load
        self._capacity = spec.config.kv_blocks * spec.config.block_size
        self.http = Http()
        self._requests = Requests(spec.served_name)
        self._start_up = StartUp(spec.served_name)
        self._scheduler = Scheduler(spec, self._capacity)
        self._lengths: dict[str, tuple[int, int]] = {}  # prompt and answer of what runs
        self._totals = (0.0, 0.0)

    @property
    def totals(self) -> tuple[float, float]:
        """Prompt and generated tokens so far."""
        return self._totals

    def taken(self, ids: Iterable[str], *, stream: bool) -> None:
        """The core took these requests; they are told apart by whether their answers stream."""
        if stream:
            self._requests.streams.update(ids)

    def observe(self, outputs: Sequence[Output]) -> None:
        """Count what the core brought."""
        for output in outputs:
            self._count_lengths(output)
            self._scheduler.observe(output, self._lengths)
            self._requests.observe(output)
            for finish in output.finished:
                self._lengths.pop(finish.id, None)

    def _count_lengths(self, output: Output) -> None:
        steps = len(output.times_s)
        lengths, (prompts, made) = self._lengths, self._totals
        for first in output.firsts:
            lengths[first.id] = first.prompt_tokens, 0
            prompts += first.prompt_tokens
        for request_id in output.ids:
            prompt, answer = lengths.get(request_id, (0, 0))
            lengths[request_id] = prompt, answer + steps
        self._totals = prompts, made + len(output.ids) * steps

    def count_request(self, n: int, max_tokens: int | None) -> None:
        """SGLang counts requests when they end."""

    def count_rejection(self) -> None:
        """A full queue shows in no metric but the HTTP status."""

    @property
    def throughput(self) -> float:
        """Tokens per second of the last steps that were measured."""
        return self._scheduler.throughput

    def started(self, times: Mapping[str, Any]) -> None:
        """It is ready, after a start with these parts in seconds."""
        self._start_up.told(times)

    def stopped(self) -> None:
        """All that ran went back into the queue, and nothing is computed."""
        self._scheduler.stopped()

    def render(self) -> str:
        """The exposition."""
        total = sum(prompt + answer for prompt, answer in self._lengths.values())
        self._scheduler.look(self._load, total)
        parts = (self._scheduler, self._start_up, self._requests, self.http)
        return "".join(part.render() for part in parts)


class Scheduler:
    """What the scheduler's process tells: of its load, its steps, its cache."""

    def __init__(self, spec: EngineSpec, capacity_tokens: int) -> None:
        self._capacity = capacity_tokens
        self._labels = {
            "model_name": spec.served_name,
            "engine_type": "unified",
            **dict.fromkeys(("tp_rank", "pp_rank", "moe_ep_rank"), "0"),
        }
        self._families: list[Shared | SharedHistogram] = []
        self._window = (0, 0, 0.0)  # decode steps, tokens, start of what is not told yet
        graphs = "disable-cuda-graph" not in dict(spec.options)
        self._decode_mode = "decode_cuda_graph" if graphs else "decode_none"
        self._build_load(spec)
        self._build_counts()

    def _gauge(self, name: str, text: str, **labels: str) -> Shared:
        family = Shared("gauge", f"sglang:{name}", text, self._labels | labels)
        self._families.append(family)
        return family

    def _counter(self, name: str, text: str) -> Shared:
        family = Shared("counter", f"sglang:{name}", text, self._labels)
        self._families.append(family)
        return family

    def _build_load(self, spec: EngineSpec) -> None:
        gauge = self._gauge
        self._running = gauge("num_running_reqs", "Requests that run.").at()
        self._waiting = gauge("num_queue_reqs", "Requests that wait.").at()
        self._throughput = gauge("gen_throughput", "Tokens generated per second.").at()
        self._hit_rate = gauge("cache_hit_rate", "Share of the last prompts in the cache.").at()
        self._decoding = gauge("decode_sum_seq_lens", "Tokens of all running requests.").at()
        self._usage = [
            gauge("token_usage", "Share of the KV cache in use.").at(),
            gauge("full_token_usage", "The same of full attention.").at(),
        ]
        self._used = [
            gauge("num_used_tokens", "Tokens of the KV cache in use.").at(),
            gauge("kv_used_tokens", "The same of full attention.").at(),
        ]
        self._available = gauge("kv_available_tokens", "Tokens of the KV cache free.").at()
        gauge("kv_evictable_tokens", "Cached tokens that could go.").at()
        # These two are told for each process.
        self._retracted = gauge("num_retracted_reqs", "Requests put back.", pid="1").at()
        gauge("num_paused_reqs", "Requests paused.", pid="1").at()
        gauge("fwd_occupancy", "Share of time the GPU computes; not measured.").at().set(math.nan)
        graphs = gauge("is_cuda_graph", "Whether the last decode step was a CUDA graph.").at()
        graphs.set(float(self._decode_mode == "decode_cuda_graph"))
        for name in ABSENT:
            gauge(name, "Of a feature this engine runs without.").at()
        config = spec.config
        for name, text, value in (
            ("max_total_num_tokens", "Tokens the KV cache holds.", self._capacity),
            ("page_size", "Tokens of a page of the KV cache.", config.block_size),
            ("num_pages", "Pages of the KV cache.", config.kv_blocks),
            ("context_len", "The model's length in tokens.", config.max_model_tokens),
        ):
            gauge(name, text).at().set(value)

    def _build_counts(self) -> None:
        counter = self._counter
        self._retractions = counter("num_retracted_requests_total", "Requests put back.")
        self._retracted_input = counter("num_retracted_input_tokens_total", "Their prompts.")
        self._retracted_output = counter("num_retracted_output_tokens_total", "Their answers.")
        self._passes = counter("cuda_graph_passes_total", "Steps, by how they were run.")
        self._realtime = counter("realtime_tokens_total", "Tokens computed, as they are.")
        self._effective = counter("prefill_effective_tokens_total", "Prompt tokens, by source.")
        for mode in ("input", "device_hit", "host_hit", "storage_hit"):
            self._effective.at(mode=mode)
        self._queue_time = SharedHistogram(
            "sglang:queue_time_seconds", "Time in the queue.", self._labels, QUEUE_BOUNDS
        )
        self._families.append(self._queue_time)

    def observe(self, output: Output, lengths: dict[str, tuple[int, int]]) -> None:
        """Count what the core brought; ``lengths`` are of prompts and answers by request."""
        if output.prefill_tokens:
            self._passes.at(mode="prefill_none").add(1)
            self._realtime.at(mode="prefill_compute").add(output.prefill_tokens)
        cached = sum(first.cached_tokens for first in output.firsts)
        if cached:
            self._realtime.at(mode="prefill_cache").add(cached)
        prompts = sum(first.prompt_tokens for first in output.firsts)
        if prompts:
            self._effective.at(mode="input").add(prompts - cached)
            self._effective.at(mode="device_hit").add(cached)
            self._hit_rate.set(cached / prompts)
        self._decoded(output)
        if output.preempted:
            self._put_back(output, lengths)
        for finish in output.finished:
            if finish.scheduled_s is not None:
                self._queue_time.at().observe(finish.scheduled_s - finish.arrived_s)

    def _decoded(self, output: Output) -> None:
        decoding, steps = len(output.ids) - len(output.firsts), len(output.times_s)
        tokens = decoding + len(output.ids) * (steps - 1)
        if tokens <= 0:
            return
        self._passes.at(mode=self._decode_mode).add(steps)
        self._realtime.at(mode="decode").add(tokens)
        done, made, since_s = self._window
        since_s = since_s or output.times_s[0]
        done, made, now_s = done + steps, made + tokens, output.times_s[-1]
        if done >= DECODE_LOG_INTERVAL and now_s > since_s:
            self._throughput.set(made / (now_s - since_s))
            done, made, since_s = 0, 0, now_s
        self._window = done, made, since_s

    def _put_back(self, output: Output, lengths: dict[str, tuple[int, int]]) -> None:
        self._retracted.set(len(output.preempted))
        self._retractions.at().add(len(output.preempted))
        for request_id in output.preempted:
            prompt, answer = lengths.get(request_id, (0, 0))
            self._retracted_input.at().add(prompt)
            self._retracted_output.at().add(answer)

    def look(self, load: Load, running_tokens: int) -> None:
        """Take the gauges of this moment."""
        self._running.set(load.running)
        self._waiting.set(load.waiting)
        self._decoding.set(running_tokens)
        used = round(load.kv_usage * self._capacity)
        for cell in self._usage:
            cell.set(load.kv_usage)
        for cell in self._used:
            cell.set(used)
        self._available.set(self._capacity - used)
        if not load.running and not load.waiting:
            self.stopped()

    @property
    def throughput(self) -> float:
        """Tokens generated per second."""
        return self._throughput.value

    def stopped(self) -> None:
        """Nothing is generated."""
        self._throughput.set(0.0)
        self._window = 0, 0, 0.0

    def render(self) -> str:
        """The exposition."""
        return "".join(family.render() for family in self._families)
