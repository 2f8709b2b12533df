"""Queries in scripts and forms that people type, and the word as a document writes it."""

from __future__ import annotations

CASES = [
    ("报销流程", "报销流程"),
    ("报销", "报销流程"),
    ("12306", "铁路12306"),
    ("铁路12306订单怎么报销", "铁路12306"),
    ("年假有多少天", "带薪年假十五天"),
    ("軟體授權", "软件授权"),
    ("数据库备份", "資料庫備份"),
    ("ABC-1234", "\uff21\uff22\uff23\uff0d\uff11\uff12\uff13\uff14"),
    ("Zürich", "Zu\u0308rich"),
    ("학점인정", "\u1112\u1161\u11a8\u110c\u1165\u11b7\u110b\u1175\u11ab\u110c\u1165\u11bc"),
]
"""(query, written): B13, B14, B16, B17 and widths."""

FILLERS = [
    "The canteen serves lunch at noon.",
    "Reception is staffed from eight.",
    "会议室请提前预订。",
    "门禁卡丢失请立即挂失。",
    "Spare keys hang in the workshop.",
]


def text_of(written: str) -> str:
    return f"{written}，第一章。这里说明有关事项。"


TEXTS = [*dict.fromkeys(text_of(written) for _, written in CASES), *FILLERS]
