"""Words that ask or join rather than name: left out of questions, never out of the index."""

from __future__ import annotations

import regex

STOP_WORDS: frozenset[str] = frozenset(
    """
    a about am an and any are as at be been being but by can could did do does doing for from had has have having he her
    here hers him his how i if in into is it its just me might my no nor not of on or our ours shall she should so some
    such than that the their theirs them then there these they this those to too us was we were what when where which
    while who whom whose why will with would you your yours don't doesn't didn't isn't aren't wasn't won't can't i'm
    what's it's let's please tell after again also before both during each few here's more most now only other per same
    that's very within without
    """.split()  # noqa: SIM905
)

# Asking for an amount is not naming a thing: "how long is the trial" must not look for the word "long".
HOW_MUCH = regex.compile(r"\bhow\s+(?:many|much|long|often|far|old|soon|big|large|high|quickly|fast|late|early)\b")

_KEPT = (
    "目的|现在|存在|所有|拥有|有效|有限|有关|有权|享有|没有|了解|在线|在职|在岗|和解|与会|参与|授与|是非|同时|"
    "最多|最少|不同|不要|大会|会议|工会|社会|会员|会计|都市|首都|就业|就职|就餐|能力|能源|性能|功能|智能|对象|对方|对账|核对|面对|反对|"
    "因为|为了|作为|行为|成为|认为|中国|中心|其中|从业|从事|到期|到账|到达|被告|吗啡|时间|个人|几何|我方|你方|他人|其他|上传|下载|要求|需求|请求|请假|申请|邀请"
)
_DROPPED = (
    "为什么|有没有|是不是|能不能|可不可以|要不要|怎么样|怎么办|什么时候|多长时间|多少钱|多少|多久|多长|多大|多高|多远|几点|几天|几个|几次|几年|几岁|"
    "什么|怎么|怎样|如何|为何|何时|何地|是否|能否|可否|哪些|哪个|哪里|哪儿|哪天|哪种|哪一|谁|请问|告诉我|告诉|想知道|一下|可以|"
    "应该|需要|必须|我们|你们|他们|它们|咱们|这个|那个|这些|那些|以及|并且|或者|还是|关于|对于|时候|"
    "的|了|吗|呢|吧|啊|呀|嘛|么|是|在|有|和|与|及|或|我|你|他|她|它|们|这|那|就|都|也|还|要|会|能|让|把|被|给|跟|从|到|向|对|于|"
    "为|之|其|所|而|但|若|则|几|很|最"
)
_SPLIT = regex.compile(f"({_KEPT})|(?:{_DROPPED})")


def content_spans_of_han(run: str) -> list[str]:
    """The pieces of a folded Chinese run between its function words.

    A single character left over is dropped: the index holds it only inside pairs, so it could never be found.
    """
    pieces: list[str] = _SPLIT.sub(lambda match: match.group(1) or " ", run).split()
    return [piece for piece in pieces if len(piece) > 1 or len(run) == 1]
