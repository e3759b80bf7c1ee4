"""What ``servelab engine --help`` says: the flags of ``vllm serve`` that change something."""

from collections.abc import Mapping

import click

from modelserve.engines import vllm

# Section → flag as it is shown → what it does, its default.
SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Engine": {
        "MODEL, --model NAME": ("Hub or short name of the model.", ""),
        "--served-model-name NAME": ("The name in the API.", "MODEL"),
        "--config FILE": ("YAML whose keys are flags, of any section.", ""),
        "--file FILE": ("YAML with a list `engines` of such mappings.", ""),
    },
    "Model": {
        "--max-model-len N": (
            "Longest prompt and answer, in tokens: 8192, 8k, auto.",
            "the model's",
        ),
        "-q, --quantization METHOD": ("fp8, awq, gptq, bitsandbytes, …", "as the name says"),
        "--load-format FORMAT": ("runai_streamer and its like load faster.", "auto"),
        "--enforce-eager": ("No compilation, no graph capture: a shorter start.", "off"),
        "-tp, --tensor-parallel-size N": ("GPUs of the engine.", "1"),
    },
    "Scheduler": {
        "--max-num-seqs N": ("Most requests in a batch.", "256 or 1024, by GPU"),
        "--max-num-batched-tokens N": ("Token budget of a step.", "2048 to 16384, by GPU"),
        "--max-num-queued-reqs N": ("More that wait are refused with 503.", "no limit"),
        "--no-enable-chunked-prefill": ("Compute a prompt in one step.", "divided"),
    },
    "Cache": {
        "--gpu-memory-utilization SHARE": (
            "Of GPU memory, for weights and KV cache.",
            f"{vllm.GPU_MEMORY_UTILIZATION:g}",
        ),
        "--kv-cache-dtype TYPE": ("fp8 takes half the room.", "auto"),
        "--no-enable-prefix-caching": ("Compute prompts anew each time.", "cached"),
    },
    "API": {
        "--api-key KEY…": ("Bearer tokens for paths under /v1.", "open to all"),
        "--enable-auto-tool-choice": ("Call tools unasked, with --tool-call-parser.", "off"),
        "--reasoning-parser NAME": ("Think before answers: qwen3, deepseek_r1, …", "no thoughts"),
        "--enable-prompt-tokens-details": ("Tell cached prompt tokens in usage.", "off"),
        "--runner pooling": ("Embeddings.", "auto"),
        "--disable-uvicorn-access-log": ("No log line for each request.", "off"),
    },
}
REST = """\
All other flags of `vllm serve` 0.33.0 are taken and checked, and most change nothing; one that it
does not have ends with exit code 2, as there. Another engine's command line goes after --:

\b
  servelab engine --gpu a100 -- python3 -m sglang.launch_server --model-path MODEL --port 30000

Flags count before environment (SERVELAB_ENGINE_MAX_NUM_SEQS=32, SERVELAB_ENGINE_GPU=l4), that
before the file, that before the defaults. SIGTERM drains. Each engine that is ready prints a line
of JSON."""


class EngineCommand(click.Command):
    """A command whose help has the engine's own flags, by section, before ours."""

    # Which of our options belong to the sections of serving; the rest is emulation.
    SERVER = ("host", "port", "drain_seconds", "admin_listen", "admin_token_file")
    ENGINE = ("config", "file")

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """-h alone asks for help; as an option it would be taken out of -dph too."""
        own = args[: args.index("--")] if "--" in args else args
        return super().parse_args(ctx, ["--help"] if "-h" in own else args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Sections of the engine's flags, then the options of ours."""
        for title, flags in SECTIONS.items():
            with formatter.section(title):
                rows = [(flag, _described(*told)) for flag, told in flags.items()]
                formatter.write_dl(rows)
        params = self.get_params(ctx)
        server = [param for param in params if param.name in self.SERVER]
        others = [param for param in params if param.name not in (*self.SERVER, *self.ENGINE)]
        for title, listed in (("Server", server), ("Emulation", others)):
            with formatter.section(title):
                records = (param.get_help_record(ctx) for param in listed)
                formatter.write_dl([record for record in records if record is not None])
        formatter.write_paragraph()
        formatter.write_text(REST)


def _described(text: str, default: str) -> str:
    return f"{text}  [default: {default}]" if default else text
