"""Why a model call failed, under the names that clients know (E2)."""

from __future__ import annotations

from pydantic_ai import exceptions as errors

from runner_service.agents.protocol import AgentFailure
from turngate.v1 import run_pb2

_R = run_pb2

_FILTERED = "the provider's content filter stopped it"
# Providers refuse so what they would else refuse as malformed: OpenAI by a code, Anthropic only by
# its text.
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation", "invalid_prompt"})
_FILTER_TEXT = "blocked by content filtering policy"

# The first that fits counts. Texts are ours: a provider's own may repeat a piece of a key.
_KNOWN: tuple[tuple[type[Exception], run_pb2.RunFailureReason.ValueType, str], ...] = (
    (
        errors.ModelContextWindowExceededError,
        _R.RUN_FAILURE_REASON_MODEL_CONTEXT_TOO_LONG,
        "the conversation is too long for the model",
    ),
    (
        errors.ModelAuthenticationError,
        _R.RUN_FAILURE_REASON_MODEL_AUTHENTICATION,
        "the provider refused the credentials",
    ),
    (
        errors.ModelQuotaExceededError,
        _R.RUN_FAILURE_REASON_MODEL_RATE_LIMIT,
        "the account's quota with the provider is used up",
    ),
    (
        errors.ModelRateLimitError,
        _R.RUN_FAILURE_REASON_MODEL_RATE_LIMIT,
        "the provider's rate limit was reached",
    ),
    (
        errors.ContentFilterError,
        _R.RUN_FAILURE_REASON_MODEL_CONTENT_FILTER,
        _FILTERED,
    ),
    (
        errors.ModelNotFoundError,
        _R.RUN_FAILURE_REASON_MODEL_BAD_REQUEST,
        "the provider does not know the model",
    ),
    (
        errors.ModelRequestRejectedError,
        _R.RUN_FAILURE_REASON_MODEL_BAD_REQUEST,
        "the provider refused the request",
    ),
    (
        errors.ModelConnectionError,
        _R.RUN_FAILURE_REASON_MODEL_UNAVAILABLE,
        "the provider cannot be reached",
    ),
    (
        errors.ModelRequestTimeout,
        _R.RUN_FAILURE_REASON_MODEL_UNAVAILABLE,
        "the provider did not answer in time",
    ),
    (
        errors.ModelAPIError,
        _R.RUN_FAILURE_REASON_MODEL_UNAVAILABLE,
        "the provider answered with an error of its own",
    ),
    (
        errors.UsageLimitExceeded,
        _R.RUN_FAILURE_REASON_AGENT_ERROR,
        "the agent's limit of usage was reached",
    ),
    (
        errors.OutputTokenLimitExceeded,
        _R.RUN_FAILURE_REASON_AGENT_ERROR,
        "the model reached its limit of tokens before it had answered",
    ),
    (
        errors.UnexpectedModelBehavior,
        _R.RUN_FAILURE_REASON_AGENT_ERROR,
        "the model's answers did not fit what the agent asks for",
    ),
)


def failure_of(error: BaseException) -> AgentFailure | None:
    """The failure that an error of Pydantic AI stands for; `None` for any other error.

    Of a group (several models were tried) the last one that is known counts.
    """
    if isinstance(error, BaseExceptionGroup):
        for one in reversed(error.exceptions):
            if (failure := failure_of(one)) is not None:
                return failure
        return None
    if isinstance(error, errors.ModelAPIError) and _is_of_a_filter(error):
        return AgentFailure(_R.RUN_FAILURE_REASON_MODEL_CONTENT_FILTER, _FILTERED)
    for kind, reason, message in _KNOWN:
        if isinstance(error, kind):
            return AgentFailure(reason, message, retry_after_ms=_retry_after_ms(error))
    return None


def _is_of_a_filter(error: errors.ModelAPIError) -> bool:
    return error.provider_error_code in _FILTER_CODES or _FILTER_TEXT in str(error.body)


def _retry_after_ms(error: BaseException) -> int:
    if not isinstance(error, errors.ModelAPIError) or error.retry_after is None:
        return 0
    return max(0, round(error.retry_after * 1000))
