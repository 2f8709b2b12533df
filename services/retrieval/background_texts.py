"""Plain sentences about nothing in particular. The mean of their vectors says where a model puts any text at all.

A space of three chunks knows no such mean of its own: its mean is its content. Embedded as passages, once per model.
"""

from __future__ import annotations

BACKGROUND_TEXTS: tuple[str, ...] = (
    "The recipe needs two cups of flour, a pinch of salt and warm milk.",
    "The committee approved the annual budget after a short debate.",
    "To install the program, open a terminal and run the setup command.",
    "The patient was given antibiotics and recovered within a week.",
    "A river flows from the mountains to the sea through three countries.",
    "The contract ends on the last day of the month unless it is renewed.",
    "The team won the final match by two goals to one.",
    "The museum shows paintings from the seventeenth century.",
    "Employees must wear a helmet and gloves in the workshop.",
    "The function returns an error when the file does not exist.",
    "The train leaves at half past eight from platform four.",
    "Interest rates rose as the central bank fought inflation.",
    "把面粉、盐和温水混合，揉成面团后静置一小时。",
    "董事会在讨论后通过了年度预算。",
    "请在终端中运行安装命令，然后重新启动电脑。",
    "病人服用药物一周后恢复了健康。",
    "这条河发源于高山，流经三个省，最后汇入大海。",
    "合同到期后，双方可以协商续签。",
    "主队以二比一赢得了决赛。",
    "博物馆展出了十七世纪的绘画作品。",
    "进入车间必须佩戴安全帽和手套。",
    "如果文件不存在，该函数会返回错误。",
    "列车八点半从四号站台发车。",
    "中央银行提高利率以抑制通货膨胀。",
)
