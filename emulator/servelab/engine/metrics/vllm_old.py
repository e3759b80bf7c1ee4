"""Metrics that vLLM had once: today's figures under earlier names, and what it tells no more."""

from collections.abc import Mapping, Sequence

from servelab.engine.core.sequences import Output
from servelab.engine.metrics.series import Family, Histogram
from servelab.engine.metrics.vllm_names import Names


class Renamed:
    """A family under an earlier name."""

    def __init__(self, family: Family | Histogram, name: str, old: str) -> None:
        self._family, self._name, self._old = family, name, old

    def render(self) -> str:
        """The text."""
        return self._family.render().replace(self._name, self._old)


class OldFamilies:
    """Families that have no heir; those this engine exports."""

    def __init__(self, names: Names, labels: Mapping[str, str], created_unix_s: float) -> None:
        self._names, self._labels, self._created_unix_s = names, labels, created_unix_s
        self.families: list[Family] = []
        self._add("gauge", "num_requests_swapped", "Requests swapped to the CPU.")
        self._add("gauge", "cpu_cache_usage_perc", "CPU's KV blocks in use, 0 to 1.")
        hit_rates = "Prefix cache hits, 0 to 1; -1: there is none."
        self._add("gauge", "cpu_prefix_cache_hit_rate", hit_rates).set(-1.0)
        self._hit_rate = self._add("gauge", "gpu_prefix_cache_hit_rate", hit_rates)
        self._tokens = self._add("counter", "tokens", "Prompt and generated tokens.")
        self._prompt_rate = self._add(
            "gauge", "avg_prompt_throughput_toks_per_s", "Prompt tokens per second."
        )
        self._generation_rate = self._add(
            "gauge", "avg_generation_throughput_toks_per_s", "Generated tokens per second."
        )
        self._now_s = self._since_s = 0.0
        self._before = 0.0, 0.0

    def renamed(self, heirs: Mapping[str, Family | Histogram]) -> list[Renamed]:
        """Today's families by their earlier names, where this engine exports those."""
        return [
            Renamed(family, family.name, f"vllm:{old}")
            for old, family in heirs.items()
            if self._names.has(old)
        ]

    def observe(self, outputs: Sequence[Output]) -> None:
        """Go on to the time of what the core brought."""
        if self.families:
            times_s = [output.times_s[-1] for output in outputs if output.times_s]
            self._now_s = times_s[-1] if times_s else self._now_s

    def set(self, totals: tuple[float, float], hit_rate: float) -> None:
        """Figures of a scrape; rates are those since the last one."""
        prompt, generated = totals
        elapsed_s = self._now_s - self._since_s
        self._tokens.set(prompt + generated)
        self._hit_rate.set(hit_rate)
        before_prompt, before_generated = self._before
        self._prompt_rate.set((prompt - before_prompt) / elapsed_s if elapsed_s else 0.0)
        self._generation_rate.set((generated - before_generated) / elapsed_s if elapsed_s else 0.0)
        self._since_s, self._before = self._now_s, totals

    def _add(self, kind: str, name: str, text: str) -> Family:
        family = Family(kind, f"vllm:{name}", text, [self._labels], self._created_unix_s)
        if self._names.has(name):
            self.families.append(family)
        return family
