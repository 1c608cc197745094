"""Amounts of money, exactly: a budget is an integer number of cents."""

from decimal import Decimal, InvalidOperation

from fedcoast.errors import BadSetting

MOST_CENTS = 10**18


def cents(budget: str | int | Decimal) -> int:
    """A budget in cents, exactly.

    >>> cents("100000"), cents("0.07"), cents(Decimal("12.5"))
    (10000000, 7, 1250)
    """
    expected = "budget must be an amount with at most two decimals, such as 100000 or 99.95"
    if isinstance(budget, bool) or not isinstance(budget, str | int | Decimal):
        raise BadSetting(f"{expected}, as text, an integer or a Decimal; got {budget!r}")
    try:
        value = Decimal(budget)
    except InvalidOperation:
        raise BadSetting(f"{expected}; got {budget!r}") from None
    _, digits, exponent = value.as_tuple()
    too_fine = isinstance(exponent, int) and exponent < -2 and any(digits[exponent + 2 :])
    if not value.is_finite() or too_fine or not 0 <= value <= MOST_CENTS // 100:
        raise BadSetting(f"{expected}, from 0 to {amount(MOST_CENTS)}; got {str(budget)!r}")
    return int(value * 100)


def amount(number_of_cents: int) -> str:
    """Cents as people write them.

    >>> amount(1234507)
    '12345.07'
    """
    return f"{number_of_cents // 100}.{number_of_cents % 100:02}"
