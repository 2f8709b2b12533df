"""The numbers a text states, in figures, in English words and in Chinese numerals."""

from __future__ import annotations

import regex

_FIGURES = regex.compile(r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
_SMALL = (
    ("zero",), ("one", "first", "once"), ("two", "second", "twice"), ("three", "third"), ("four", "fourth"),
    ("five", "fifth"), ("six", "sixth"), ("seven", "seventh"), ("eight", "eighth"), ("nine", "ninth"), ("ten", "tenth"),
    ("eleven",), ("twelve",), ("thirteen",), ("fourteen",), ("fifteen",), ("sixteen",), ("seventeen",), ("eighteen",),
    ("nineteen",), ("twenty",),
)  # fmt: skip
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
}  # fmt: skip
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_WORDS = (
    {word: value for value, words in enumerate(_SMALL) for word in words}
    | _TENS
    | {"hundred": 100, "thousand": 1_000, "million": 1_000_000}
    | {month: number for number, month in enumerate(_MONTHS, start=1)}
)
_COMPOUND = regex.compile(rf"\b({'|'.join(_TENS)})[- ]([a-z]+)\b")
_ENGLISH = regex.compile(r"[a-z]+")
_CHINESE = regex.compile(r"[零〇一二两三四五六七八九十百千万]+")
_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_UNITS = {"十": 10, "百": 100, "千": 1_000, "万": 10_000}


def figures_in(folded: str) -> set[str]:
    """Numbers written in digits, without grouping, leading zeros or a decimal tail of zeros."""
    return {_plain(match.group()) for match in _FIGURES.finditer(folded)}


def all_numbers_in(folded: str) -> set[str]:
    """Numbers in any of the known writings, months included."""
    found = figures_in(folded)
    found.update(str(_WORDS[word]) for word in _ENGLISH.findall(folded) if word in _WORDS)
    for tens, ones in _COMPOUND.findall(folded):
        if _WORDS.get(ones, 10) < 10:
            found.add(str(_TENS[tens] + _WORDS[ones]))
    found.update(str(_chinese_value(match)) for match in _CHINESE.findall(folded))
    return found


def _plain(figure: str) -> str:
    whole, _, tail = figure.replace(",", "").partition(".")
    tail = tail.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return f"{whole}.{tail}" if tail else whole


def _chinese_value(numeral: str) -> int:
    """`一百二十` -> 120, `二〇二四` -> 2024."""
    if not any(char in _UNITS for char in numeral):
        return int("".join(str(_DIGITS[char]) for char in numeral))
    total = section = digit = 0
    for char in numeral:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char == "万":
            total, section, digit = (total + section + digit) * 10_000, 0, 0
        else:
            section, digit = section + (digit or 1) * _UNITS[char], 0
    return total + section + digit
