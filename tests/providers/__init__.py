"""Strict local servers that speak the wire of three model providers.

`server.serving(script)` starts one server with OpenAI Chat Completions, OpenAI Responses and
Anthropic Messages. A script says what the model answers, the rules of each wire refuse what the
provider refuses, and every exchange is recorded. What a refusal rests on is cited beside it: the
provider's documentation, the types of its client library, or an error that users of the real
service reported.
"""
