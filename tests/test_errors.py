"""Errors: one tree, every code of the contract, each with its class."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gripfast import errors
from gripfast.errors import CODES, NotFound, TimedOut, ToolError

# Every failure is one of these.
CONTRACT = """INVALID_ARGUMENT NOT_FOUND NOT_FILE NOT_DIRECTORY BINARY_NOT_SUPPORTED SIZE_LIMIT_EXCEEDED INVALID_REGEX
WAITING_FOR_APPROVAL
SANDBOX_VIOLATION POLICY_DENIED NOT_READ CONFLICT NO_MATCH NOT_UNIQUE ENCODING TIMEOUT TOOL_NOT_FOUND CANCELLED
UNAVAILABLE RATE_LIMITED UNAUTHORIZED INTERNAL"""


def subclasses() -> dict[str, type[ToolError]]:
    return {
        cast("Any", one).CODE: one
        for one in vars(errors).values()
        if isinstance(one, type) and issubclass(one, ToolError) and "CODE" in vars(one) and one.__name__[0] != "_"
    }


def test_there_is_a_class_for_every_code_and_the_tree_at_the_top_draws_it() -> None:
    assert set(CONTRACT.split()) == CODES == set(subclasses())
    drawn = errors.__doc__ or ""
    for code, one in subclasses().items():
        assert any(code in line and one.__name__ in line for line in drawn.splitlines())


@pytest.mark.parametrize("code", sorted(CODES))
def test_an_error_has_a_code_a_message_and_details(code: str) -> None:
    error = subclasses()[code]("what, which value, what next", details={"a": 1})  # type: ignore[call-arg, arg-type]
    assert (error.code, error.message, error.details) == (code, "what, which value, what next", {"a": 1})
    assert str(error) == f"{code}: what, which value, what next"
    assert isinstance(error, ToolError)
    bare = ToolError(code, "x", retriable=True)
    assert (bare.code, bare.retriable, bare.details) == (code, True, {})


def test_only_what_may_succeed_unchanged_is_retriable_by_itself() -> None:
    retriable = {code for code, one in subclasses().items() if one("x").retriable}  # type: ignore[call-arg, arg-type]
    assert retriable == {"WAITING_FOR_APPROVAL", "TIMEOUT", "CANCELLED", "UNAVAILABLE", "RATE_LIMITED"}
    assert NotFound("x", retriable=True).retriable
    assert not TimedOut("x", retriable=False).retriable


def test_a_code_that_is_not_upper_case_is_refused() -> None:
    with pytest.raises(ValueError, match="the error code 'oops' is not upper case, such as BINARY_NOT_SUPPORTED, "):
        ToolError("oops", "x")


def test_details_are_a_copy() -> None:
    details = {"a": 1}
    error = NotFound("x", details=details)
    details["a"] = 2
    assert error.details == {"a": 1}
