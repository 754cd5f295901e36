"""Claims about what a function returned, and the reasons they give."""

import pytest
import torch

from ringzero_course.lab import claims
from ringzero_course.lab.claims import oracle
from ringzero_course.lab.runs import Case, Run


@pytest.mark.parametrize(
    ("got", "why"),
    [
        (None, "on rank 0 it is None, not a tensor: does it return nothing?"),
        ([torch.zeros(9)] * 4, "on rank 0 it is a list of 4 tensors, not a tensor"),
        ([0.25] * 30, "on rank 0 it is a list of 30 values, not a tensor"),
        (torch.zeros(2), "on rank 0 it has shape (2,), expected (3,)"),
        (torch.tensor([1.0, 5.0, 3.0]), "on rank 0 it is wrong in element 1 of 3: [1] is 5, expected 2"),
        (torch.tensor([1.0, 2.0, float("nan")]), "on rank 0 it is wrong in element 2 of 3: [2] is nan, expected 3"),
        (torch.tensor([1.0, 2.0, 3.0]), None),
    ],
)
def test_equal(got, why):
    assert claims.equal("it", [got], [torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)]) == why


@pytest.mark.parametrize(
    ("got", "why"),
    [
        (2.0, None),
        (torch.tensor(2.0), None),
        (torch.tensor([2.0]).numpy(), None),
        (1.0, "x is 1, expected 2 (0.5 times it)"),
        (2.000004, "x is 2.000004, expected 2.0 (off by 2e-06 of it)"),
        (2.0000001, None),
        (torch.tensor([2.0, 2.0]), "x is tensor([2., 2.]), not a number"),
        (None, "x is None, not a number"),
    ],
)
def test_number(got, why):
    assert claims.number("x", got, 2.0) == why


@pytest.mark.parametrize(
    ("got", "why"),
    [
        ([1.0, 2.0, -4.0], None),
        ([1.0, 2.0003, -4.0], None),  # 1e-4 of the largest, 4
        ([1.0, 2.001, -4.0], "on rank 0 w is off by up to 0.001; its largest element should be 4"),
        ([1.0, float("nan"), -4.0], "on rank 0 w has NaN in it, as 0 / 0 gives; its largest element should be 4"),
        ([1.0, 2.0], "on rank 0 w has shape (2,), expected (3,)"),
    ],
)
def test_close(got, why):
    assert claims.close("w", [torch.tensor(got)], [torch.tensor([1.0, 2.0, -4.0], dtype=torch.float64)]) == why


def test_same_to_the_last_bit():
    w = torch.tensor([1.0, 2.0])
    assert claims.same("w", [w, w.clone()]) is None
    off = torch.tensor([1.0, 2.0 + 2**-22])  # the next number
    assert claims.same("w", [w, off]) == "on rank 1 w is not what it is on rank 0: they differ by up to 2.38e-07"
    assert claims.same("w", [w, None]) == "on rank 1 w is None, not a tensor"


def answered(value):
    return Run(Case(1, None, torch.float32, (), {}), problem=None, returned=[value])


def test_entries_of_an_answer():
    claim = claims.entry("cause", "wrong peer", "read the report")
    assert claim(answered({"cause": "wrong peer"})) is None
    assert claim(answered({"cause": "only slow"})) == "'cause' is 'only slow': read the report"
    assert claim(answered({"line": 3})) == "returned {'line': 3}, which has no entry 'cause'"
    assert claim(answered(None)) == "returned None, which has no entry 'cause'"
    assert claims.one_of("cause", {"a": 1, "b": 2})(answered({"cause": "b"})) is None
    assert claims.one_of("cause", {"a": 1, "b": 2})(answered({"cause": "c"})) == "'cause' is 'c': not one of 'a', 'b'"


@pytest.mark.parametrize("right", [7, [0, 2], "Parameter"])
def test_a_seal_fits_one_answer_and_does_not_tell_it(right):
    digest = claims.seal("it", right)
    assert len(digest) == 12
    assert str(right) not in digest
    claim = claims.sealed("it", digest, "look again")
    assert claim(answered({"it": right})) is None
    for wrong in (8, [0], [2, 0], "Tensor", None, "7"):
        assert claim(answered({"it": wrong})) == f"'it' is {wrong!r}: look again"
    assert claims.seal("other", right) != digest


def test_a_whole_number_may_be_a_float():
    assert claims.seal("it", 4.0) == claims.seal("it", 4)
    assert claims.seal("it", 4.5) != claims.seal("it", 4)


@pytest.mark.parametrize(
    ("right", "same", "other", "ordered"),
    [
        ([0, 1], ([1, 0], (0, 1), {0, 1}, torch.tensor([1, 0]), [0.0, 1.0]), ([0, 2], [0], [0, 1, 1]), False),
        ([0], (0, {0}, (0,)), (1, []), False),
        ([1, 0, 1, 2], ((1, 0, 1, 2), torch.tensor([1, 0, 1, 2])), ([0, 1, 1, 2],), True),
        (4, (4.0, 4.0000003, 3.9999, torch.tensor(4.0)), (4.01, 3.99, 5), True),
        (0.4375, (0.43751, 0.4375000001), (0.438, 0.43), True),
        ("Parameter", (" Parameter",), ("Tensor",), True),
    ],
)
def test_equal_answers_in_other_forms(right, same, other, ordered):
    digest = claims.seal("it", right, ordered)
    assert [claims.seal("it", answer, ordered) for answer in same] == [digest] * len(same)
    assert digest not in [claims.seal("it", answer, ordered) for answer in other]


def test_digits_until_two_numbers_differ():
    right = torch.tensor([1.0, 123456789.0], dtype=torch.float64)
    why = claims.equal("it", [right + torch.tensor([0.0, 1.0])], [right])
    assert why == "on rank 0 it is wrong in element 1 of 2: [1] is 123456790.0, expected 123456789.0"


@pytest.mark.parametrize("form", [3, 3.0, torch.tensor(3), torch.tensor([3.0]), torch.tensor([3]).numpy()])
def test_a_whole_number_in_other_forms(form):
    assert claims.counts(lambda: 3)(Run(Case(1, None, torch.float32, (), {}), None, [form])) is None
    assert claims.counts(lambda: 4)(Run(Case(1, None, torch.float32, (), {}), None, [form])) == (
        "counted 3, expected 4: -1"
    )


def test_nan_is_no_number_we_expect():
    assert claims.number("x", float("nan"), 2.0) is not None


def test_numbers():
    assert claims.numbers(("a", "b"), (1, 2.0), (1, 2)) is None
    assert claims.numbers(("a", "b"), (1, 2.5), (1, 2)) == "b is 2.5, expected 2 (1.25 times it)"
    assert claims.numbers(("a", "b"), 3, (1, 2)) == "returned 3, not (a, b)"
    assert claims.numbers(("a", "b"), (1, 2, 3), (1, 2)) == "returned (1, 2, 3), not (a, b)"


def test_far_off():
    one, zeros = torch.tensor([1.0, -2.0]), torch.zeros(2)

    assert claims.far_off("it", one, one) is None
    assert claims.far_off("it", one * 3, one) == "it is 3 times what it should be"
    assert claims.far_off("it", zeros, one) == "it is all zeros; its largest element should be 2"
    assert claims.far_off("it", one + 1, one) == "it is off by up to 1; its largest element should be 2"
    assert claims.far_off("it", one, zeros) == "it is off by up to 2; its largest element should be 0"
    assert claims.far_off("it", one[:1] * 3, one[:1]) == "it is 3, expected 1 (3 times it)"
    assert claims.far_off("it", None, zeros) == "it is None, not a tensor"
    assert claims.far_off("it", torch.zeros(3), zeros) == "it has shape (3,), expected (2,)"
    assert "has NaN in it" in claims.far_off("it", one * float("nan"), one)
    assert "has values like 3e+30, as in memory that was never written" in claims.far_off("it", one + 3e30, one)


def test_all_of_gives_the_first_reason():
    def never(run):
        return "never"

    claim = claims.all_of(claims.entry("a", 1, "not 1"), never, lambda run: "not asked")
    assert claim(answered({"a": 1})) == "never"
    assert claim(answered({"a": 2})) == "'a' is 2: not 1"
    assert claims.all_of(claims.entry("a", 1, "not 1"))(answered({"a": 1})) is None


def test_a_wrong_unit_is_named_where_the_name_says_which_units_there_are():
    assert claims.number("algbw", 8.0, 1.0) == "algbw is 8, expected 1 (8 times it: Gbit/s, not GB/s?)"
    assert claims.number("busbw", 2e9, 2.0) == "busbw is 2e+09, expected 2 (1e+09 times it: bytes a second, not GB/s?)"
    assert claims.number("the share", 8.0, 1.0) == "the share is 8, expected 1 (8 times it)"
    assert "milliseconds, not seconds?" in claims.number("the exposed time", 2000.0, 2.0)


def two_ranks(**reports):
    return Run(
        Case(2, None, torch.float32, (), {}), None, [{name: on[r] for name, on in reports.items()} for r in (0, 1)]
    )


def test_what_ranks_report_beside_an_oracle():
    right = {"a": torch.tensor([1.0, 2.0]), "b": torch.zeros(0)}
    wrong = {"a": torch.tensor([5.0, 2.0]), "b": None}
    claim = oracle.is_right(lambda run, rank: {"x": right}, "x", hint=": look")
    assert claim(two_ranks(x=[right, [right["a"], None]])) is None  # what has no elements is right
    why = "on rank 1 a is off by up to 4; its largest element should be 2"
    assert claim(two_ranks(x=[right, wrong])) == why + ": look"
    assert claim(two_ranks(x=[[], right])) == "on rank 0 there are 0 x, expected 2"

    def mistakes(run, rank):
        return {"is five": {"x": wrong}}

    claim = oracle.is_right(lambda run, rank: {"x": right}, "x", mistakes=mistakes)
    assert claim(two_ranks(x=[right, wrong])) == "on rank 1 a is five"


def test_bytes_held_and_words_said():
    run = two_ranks(held=[1_000, 2_000], said=[[], ["it is late", "and more"]])
    claim = oracle.holds_at_most(lambda run, rank: [("afterwards", run.returned[rank]["held"], 1_500, "let it go")])
    assert claim(run) == "afterwards rank 1 holds 2,000 bytes, where 1,500 would do: let it go"
    assert oracle.holds_at_most(lambda run, rank: [("afterwards", 1, 1, "")])(run) is None
    assert oracle.nothing_said("said")(run) == "on rank 1 it is late"
    assert oracle.nothing_said("said")(two_ranks(said=[[], []])) is None


def test_what_comes_in_another_order_is_said():
    def moments(run, rank):
        yield 1.0, run.returned[rank]["left"], "it left before it was full"

    assert oracle.in_order(moments)(two_ranks(left=[1.0, 2.0])) is None
    assert oracle.in_order(moments)(two_ranks(left=[1.5, 0.5])) == "on rank 1 it left before it was full"
