"""The order of the fields of vLLM 0.33's schemas, which is the order in which errors are told."""


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


CHAT = _names(
    """
    messages model frequency_penalty logit_bias logprobs top_logprobs max_tokens
    max_completion_tokens n presence_penalty response_format seed stop stream stream_options
    temperature top_p tools tool_choice reasoning_effort thinking_token_budget
    include_reasoning parallel_tool_calls user use_beam_search top_k min_p repetition_penalty
    watermarking length_penalty stop_token_ids include_stop_str_in_output ignore_eos
    min_tokens skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens
    truncation_side prompt_logprobs logprob_token_ids allowed_token_ids bad_words echo
    add_generation_prompt continue_final_message add_special_tokens documents chat_template
    chat_template_kwargs media_io_kwargs mm_processor_kwargs structured_outputs priority
    request_id session_id return_tokens_as_token_ids return_token_ids return_weight_versions
    routed_experts_prompt_start return_token_offsets return_prompt_text mm_payload
    return_mm_kwargs cache_salt kv_transfer_params ec_transfer_params vllm_xargs
    repetition_detection stream_interval
    """
)
COMPLETION = _names(
    """
    model prompt echo frequency_penalty logit_bias logprobs max_tokens n presence_penalty seed
    stop stream stream_options suffix temperature top_p user use_beam_search top_k min_p
    repetition_penalty watermarking length_penalty stop_token_ids include_stop_str_in_output
    ignore_eos min_tokens skip_special_tokens spaces_between_special_tokens
    truncate_prompt_tokens truncation_side allowed_token_ids prompt_logprobs logprob_token_ids
    bad_words prompt_embeds add_special_tokens response_format structured_outputs priority
    request_id session_id return_tokens_as_token_ids return_token_ids return_weight_versions
    routed_experts_prompt_start return_token_offsets mm_payload return_mm_kwargs cache_salt
    kv_transfer_params ec_transfer_params vllm_xargs repetition_detection
    thinking_token_budget stream_interval
    """
)
RESPONSES = _names(
    """
    background include input instructions max_output_tokens max_tool_calls metadata model
    logit_bias parallel_tool_calls previous_response_id prompt reasoning include_reasoning
    service_tier store stream temperature text tool_choice tools top_logprobs top_p top_k
    min_p truncation user skip_special_tokens spaces_between_special_tokens
    include_stop_str_in_output presence_penalty frequency_penalty prompt_cache_key
    prompt_cache_options prompt_cache_retention safety_identifier watermarking request_id
    session_id media_io_kwargs mm_processor_kwargs priority mm_payload return_mm_kwargs
    cache_salt enable_response_messages previous_input_messages structured_outputs
    repetition_penalty seed stop stop_token_ids ignore_eos vllm_xargs kv_transfer_params
    ec_transfer_params chat_template_kwargs
    """
)
BATCH = _names(
    """
    messages model frequency_penalty logit_bias logprobs top_logprobs logprob_token_ids
    max_tokens max_completion_tokens n presence_penalty response_format seed stop temperature
    top_p user tool_choice include_reasoning best_of use_beam_search top_k min_p
    repetition_penalty watermarking length_penalty early_stopping structured_outputs
    request_id add_generation_prompt continue_final_message chat_template chat_template_kwargs
    media_io_kwargs mm_processor_kwargs priority cache_salt include_stop_str_in_output
    guided_decoding_backend echo return_tokens_as_token_ids return_token_ids
    """
)
MESSAGES = _names(
    """
    model messages max_tokens metadata output_config thinking stop_sequences stream system
    temperature tool_choice tools top_k top_p mm_payload return_mm_kwargs cache_salt
    watermarking kv_transfer_params ec_transfer_params vllm_xargs chat_template_kwargs
    """
)
COUNT = _names(
    """
    model messages output_config system thinking tool_choice tools chat_template_kwargs
    """
)
TOKENIZE_CHAT = _names(
    """
    model messages add_generation_prompt return_token_strs continue_final_message
    add_special_tokens chat_template chat_template_kwargs media_io_kwargs mm_processor_kwargs
    tools
    """
)
