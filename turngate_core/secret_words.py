"""Does a name ask for a secret (B1)? Is a text itself a credential (B2)?"""

from __future__ import annotations

import re
import unicodedata

_SECRET_WORDS = frozenset(
    {
        "password",
        "passwd",
        "passcode",
        "passphrase",
        "secret",
        "token",
        "credential",
        "credentials",
    }
)
_SECRET_PAIRS = frozenset({("api", "key"), ("access", "key"), ("private", "key")})
_JOINED_PAIRS = frozenset("".join(pair) for pair in _SECRET_PAIRS)
# `token_budget` and `token count` are quantities, not tokens.
_QUANTITIES = frozenset({"budget", "count", "limit", "quota", "usage"})

_RUN_OF_LETTERS = re.compile(r"[^\W\d_]+")
# `apiKey` and `APIKey` are `api key`.
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^\W\d_A-Za-z]+")

# What tokens of common issuers, HTTP headers and key files look like.
_CREDENTIALS = re.compile(
    r"""
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*       # JSON Web Token
    | \b(?:bearer|basic)\s+(?=\S*[0-9=])[A-Za-z0-9+/_.~-]{12,}=*    # not: basic authentication
    | \b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}
    | \b(?:gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|ya29\.|AKIA|ASIA|AIza)[A-Za-z0-9_./-]{12,}
    | \b(?:access_token|refresh_token|id_token|client_secret|api_key|apikey|password|passwd|secret)
      (?: \s*=\s*\S+ | :\s*(?=\S*[0-9])\S{6,} )                       # not: password: try again
    | \b[a-z][a-z0-9+.-]*://[^/\s:@]+:[^/\s@]+@                       # password in an address
    """,
    re.VERBOSE | re.IGNORECASE,
)


def asks_for_secret(name: str) -> bool:
    """True if a name or title has a word for a secret in it, as a whole word in any spelling."""
    words: list[str] = []
    for run in _RUN_OF_LETTERS.findall(unicodedata.normalize("NFKC", name)):
        whole = run.casefold()
        # `passWord` and `apikey` are the words too, however their capitals cut them.
        if whole in _SECRET_WORDS or whole in _JOINED_PAIRS:
            words.append(whole)
        else:
            words.extend(word.casefold() for word in _WORD.findall(run))
    return _has_secret(words)


def holds_credential(text: str) -> bool:
    """True if a text looks like a credential or carries one (B2)."""
    return _CREDENTIALS.search(text) is not None


def _has_secret(words: list[str]) -> bool:
    for index, word in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        if word == "token" and following in _QUANTITIES:
            continue
        if word in _SECRET_WORDS or word in _JOINED_PAIRS or (word, following) in _SECRET_PAIRS:
            return True
    return False
