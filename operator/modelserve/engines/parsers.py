"""The parsers of calls and thoughts that vLLM 0.33 knows, and what it says of another one.

It looks at them once its command line is read, and ends with exit code 1. Names are those that its
ToolParserManager and ReasoningParserManager have registered; a plugin may register more.
"""

from modelserve import errors
from modelserve.engines import commandline

_TOOLS = """
apertus beam cohere_command3 cohere_command4 deepseek_v3 deepseek_v31 deepseek_v32 deepseek_v4
deepseek_v41 dots ernie45 functiongemma gemma4 gigachat3 glm45 glm47 granite granite-20b-fc granite4
hermes hf hunyuan_a13b hy_v3 hy_v4 inkling internlm jamba k2_horizon kimi_k2 kimi_k3 lfm2 ling3
llama3_json llama4_json llama4_pythonic longcat mimo minicpm5 minimax_m2 minimax_m3 mistral muse
muse_glimmer musespark1x olmo3 openai phi4_mini_json plamo3 poolside_v1 pythonic qwen3_coder
qwen3_json qwen3_xml seed_oss step3 step3p5 step5 xlam
"""
_REASONING = """
beam cohere_command3 cohere_command4 deepseek_r1 deepseek_v3 deepseek_v4 deepseek_v41 ernie45 gemma4
glm45 glm47 granite granite_thinking_parser hf holo2 hunyuan_a13b hy_v3 hy_v4 inkling k2_horizon
kimi_k2 kimi_k3 ling3 mimo minicpmv minimax_m2 minimax_m2_append_think minimax_m3 mistral muse
muse_glimmer musespark1x nemotron_v3 olmo3 openai_gptoss plamo3 poolside_v1 qwen3 seed_oss step3
step3p5 step5
"""
TOOLS, REASONING = tuple(_TOOLS.split()), tuple(_REASONING.split())


def check(flags: commandline.Flags) -> None:
    """Raises StartRefused, in vLLM's words, where it knows no parser of that name."""
    tool, reasoning = flags.text("tool-call-parser"), flags.text("reasoning-parser")
    if flags.on("enable-auto-tool-choice"):
        if tool is None:
            message = "Error: --enable-auto-tool-choice requires --tool-call-parser"
            raise errors.StartRefused(f"TypeError: {message}")
        if tool not in TOOLS and flags.text("tool-parser-plugin") is None:
            known = ",".join(TOOLS)
            message = f"invalid tool call parser: {tool} (chose from {{ {known} }})"
            raise errors.StartRefused(f"KeyError: {message!r}")
    plugin = flags.text("reasoning-parser-plugin")
    if reasoning is not None and reasoning not in REASONING and plugin is None:
        known = ", ".join(REASONING)
        message = f"Reasoning parser '{reasoning}' not found. Available parsers: {known}"
        raise errors.StartRefused(f"KeyError: {message!r}")
