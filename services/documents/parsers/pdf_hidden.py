"""Text of a PDF page that a person cannot see: it must neither be indexed nor cited."""

from __future__ import annotations

import ctypes

import pypdfium2 as pdfium
import pypdfium2.raw as pdfium_c

_SMALLEST_POINTS = 1.5
_NEARLY_WHITE = 250
_SCAN_SHARE = 0.5
_INVISIBLE_MODES = {pdfium_c.FPDF_TEXTRENDERMODE_INVISIBLE, pdfium_c.FPDF_TEXTRENDERMODE_CLIP}
_PATH_LIMIT = 2_000

Box = tuple[float, float, float, float]


def remove_hidden_text(page: pdfium.PdfPage, objects: list[pdfium.PdfObject]) -> int:
    """Take unpainted, white, covered, off-page and tiny text off the page; how many objects that were.

    The invisible text over a scan is its recognised text and stays. White text on a painted ground stays.
    """
    width, height = page.get_size()
    boxes = [_bounds(item) for item in objects]
    is_scan = any(
        item.type == pdfium_c.FPDF_PAGEOBJ_IMAGE and _area(box) > _SCAN_SHARE * width * height
        for item, box in zip(objects, boxes, strict=True)
    )
    painted = [
        (number, box)
        for number, (item, box) in enumerate(zip(objects, boxes, strict=True))
        if item.type == pdfium_c.FPDF_PAGEOBJ_IMAGE or _is_filled(item)
    ]
    removed = 0
    for number, (item, box) in enumerate(zip(objects, boxes, strict=True)):
        if item.type != pdfium_c.FPDF_PAGEOBJ_TEXT or box is None:
            continue
        over = [other for place, other in painted[:_PATH_LIMIT] if place > number]
        under = [other for place, other in painted[:_PATH_LIMIT] if place < number]
        if _is_hidden(item, box, (width, height), is_scan=is_scan, over=over, under=under):
            page.remove_obj(item)
            removed += 1
    return removed


def _is_hidden(
    item: pdfium.PdfObject,
    box: Box,
    size: tuple[float, float],
    *,
    is_scan: bool,
    over: list[Box | None],
    under: list[Box | None],
) -> bool:
    left, bottom, right, top = box
    if right < 0 or top < 0 or left > size[0] or bottom > size[1]:
        return True
    if pdfium_c.FPDFTextObj_GetTextRenderMode(item) in _INVISIBLE_MODES:
        return not is_scan
    if top - bottom < _SMALLEST_POINTS and _font_points(item) < _SMALLEST_POINTS:
        return True
    if _is_white(item) and not any(_covers(other, box) for other in under):
        return True
    return not is_scan and any(_covers(other, box) for other in over)


def _bounds(item: pdfium.PdfObject) -> Box | None:
    try:
        left, bottom, right, top = item.get_bounds()
    except pdfium.PdfiumError:
        return None
    return left, bottom, right, top


def _area(box: Box | None) -> float:
    return (box[2] - box[0]) * (box[3] - box[1]) if box else 0.0


def _covers(cover: Box | None, box: Box) -> bool:
    if cover is None:
        return False
    return cover[0] <= box[0] and cover[1] <= box[1] and cover[2] >= box[2] and cover[3] >= box[3]


def _fill(item: pdfium.PdfObject) -> tuple[int, int, int, int] | None:
    red, green, blue, alpha = (ctypes.c_uint() for _ in range(4))
    if not pdfium_c.FPDFPageObj_GetFillColor(item, red, green, blue, alpha):
        return None
    return red.value, green.value, blue.value, alpha.value


def _is_white(item: pdfium.PdfObject) -> bool:
    fill = _fill(item)
    return fill is not None and min(fill[:3]) >= _NEARLY_WHITE


def _is_filled(item: pdfium.PdfObject) -> bool:
    """An opaque filled area, rectangle-like as far as its bounds go."""
    if item.type != pdfium_c.FPDF_PAGEOBJ_PATH:
        return False
    mode, stroke = ctypes.c_int(), ctypes.c_int()
    if not pdfium_c.FPDFPath_GetDrawMode(item, mode, stroke) or mode.value == pdfium_c.FPDF_FILLMODE_NONE:
        return False
    fill = _fill(item)
    return fill is not None and fill[3] > 200 and pdfium_c.FPDFPath_CountSegments(item) <= 6


def _font_points(item: pdfium.PdfObject) -> float:
    size = ctypes.c_float()
    pdfium_c.FPDFTextObj_GetFontSize(item, size)
    matrix = item.get_matrix()
    return float(size.value * (matrix.c**2 + matrix.d**2) ** 0.5)
