"""Documents over HTTP: sent, listed, read in pages, and told of."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import insert

from schemas.domain_events import EventDraft
from schemas.identifiers import document_stream
from services.container import Serving
from services.stores import event_log
from services.stores.database import Database
from services.stores.tables.documents import chunks, version_chunks
from tests.integration.api.serving import Person, all_items, space_of, upload

TEXT = "多行\n𝔘nicode text: naïve\n"


async def test_files_of_a_folder_keep_their_paths_and_get_one_receipt_each(admin: Person) -> None:
    space = await space_of(admin)
    names = ["a/one.md", "..\\up\\two.md", "/top/three.md", 'quo"te.md', "naïve.md"]
    files = [("file", (name, name.encode(), "text/markdown")) for name in names]
    fields = {"space": "handbook", "tags": ["policy", "2026"], "readers": ["space", f"user:{admin.user}"]}
    reply = await admin.http.post("/v1/documents", data=fields, files=files)
    assert reply.status_code == 202
    receipts = reply.json()["documents"]
    assert [each["external_id"] for each in receipts] == [
        "a/one.md", "up/two.md", "top/three.md", 'quo"te.md', "naïve.md",
    ]  # fmt: skip
    assert {each["outcome"] for each in receipts} == {"created"}
    listed = await all_items(admin, "/v1/documents", space=space, tag="2026", state="received", limit=2)
    assert sorted(each["id"] for each in listed) == sorted(each["document_id"] for each in receipts)
    assert listed[0]["readers"] == ["space", f"user:{admin.user}"]
    assert await all_items(admin, "/v1/documents", tag="other") == []
    assert await all_items(admin, "/v1/documents", state="ready") == []


async def test_the_fields_of_the_form_may_follow_its_files(admin: Person) -> None:
    await space_of(admin)
    body = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.md"\r\n\r\n# Leave\r\n--b\r\n'
        b'Content-Disposition: form-data; name="space"\r\n\r\nhandbook\r\n--b--\r\n'
    )
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    reply = await admin.http.post("/v1/documents", content=body, headers=headers)
    assert reply.status_code == 202
    document = reply.json()["documents"][0]["document_id"]
    assert (await admin.http.get(f"/v1/documents/{document}/file")).content == b"# Leave"


async def test_the_same_bytes_are_no_new_version_and_other_bytes_are_one(admin: Person) -> None:
    space = await space_of(admin)
    first = await upload(admin, space)
    same = await upload(admin, space)
    other = await upload(admin, space, data=b"# Leave\n\n31 days.")
    assert [(each["outcome"], each["version"]) for each in (first, same, other)] == [
        ("created", 1), ("unchanged", 1), ("updated", 2),
    ]  # fmt: skip
    path = f"/v1/documents/{first['document_id']}"
    versions = await all_items(admin, f"{path}/versions", limit=1)
    assert [each["version"] for each in versions] == [2, 1]
    history = await all_items(admin, f"{path}/history", limit=1)
    assert [each["stream_version"] for each in history] == [1, 2]
    assert {each["type"] for each in history} == {"document.received"}


async def test_a_name_is_taken_for_who_may_not_read_its_document_and_says_no_more(
    admin: Person, member: Person
) -> None:
    space = await space_of(admin)
    receipt = await upload(admin, space)
    await admin.http.put(f"/v1/spaces/{space}/grants/user:{member.user}", json={"role": "contributor"})
    readers = {"readers": [f"user:{admin.user}"]}
    await admin.http.put(f"/v1/documents/{receipt['document_id']}/readers", json=readers)
    files = [("file", ("leave.md", b"mine"))]
    refused = await member.http.post("/v1/documents", data={"space": space}, files=files)
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:perdure:problem:name_taken")
    assert receipt["document_id"] not in refused.text
    both = await member.http.post("/v1/documents", data={"space": space}, files=[*files, ("file", ("b.md", b"b"))])
    assert [each["outcome"] for each in both.json()["documents"]] == ["rejected", "created"]


async def test_written_text_is_stored_clean_and_downloads_as_it_was_written(admin: Person, tmp_path: Path) -> None:
    await space_of(admin)
    body = {"space": "handbook", "title": " Leave  rules "}
    reply = await admin.http.post("/v1/documents/text", json={**body, "text": "e\u0301"})
    receipt = reply.json()["documents"][0]
    assert (reply.status_code, receipt["external_id"]) == (202, "Leave rules")
    file = await admin.http.get(f"/v1/documents/{receipt['document_id']}/file")
    assert file.content == "é".encode()
    assert file.headers["content-type"].startswith("text/plain")
    assert file.headers["content-disposition"].startswith("attachment")
    assert file.headers["x-content-type-options"] == "nosniff"


async def test_an_address_is_accepted_before_it_is_fetched(admin: Person) -> None:
    await space_of(admin)
    reply = await admin.http.post("/v1/documents/url", json={"space": "handbook", "url": "https://example.org/a"})
    receipt = reply.json()["documents"][0]
    assert (reply.status_code, receipt["outcome"], receipt["external_id"]) == (202, "accepted", "https://example.org/a")
    assert (await admin.http.get(f"/v1/documents/{receipt['document_id']}/file")).status_code == 404


async def test_a_published_version_shows_its_text_and_chunks_while_a_newer_one_works(
    admin: Person, container: Serving, database: Database
) -> None:
    space = await space_of(admin)
    document = (await upload(admin, space))["document_id"]
    await container.blobs.put("acme/texts/t1", TEXT.encode())
    async with database.begin("acme") as transaction:
        published = {"version": 1, "state": "ready", "stage": "ready", "live_version": 1, "text_key": "acme/texts/t1"}
        draft = EventDraft(stream=document_stream(document), type="document.published", data=published)
        await event_log.append(transaction, draft)
        for ordinal, (start, end) in enumerate([(0, 3), (3, len(TEXT))]):
            row = {"id": f"c{ordinal}", "document_id": document, "text_hash": "h", "input_hash": "h"}
            text = {"text": TEXT[start:end], "embedding_input": TEXT[start:end], "tokens": 3}
            await transaction.execute(insert(chunks).values(**row, **text))
            place = {"document_id": document, "version": 1, "ordinal": ordinal, "chunk_id": f"c{ordinal}"}
            shown = {"start": start, "end": end, "heading_path": [], "kind": "text"}
            await transaction.execute(insert(version_chunks).values(**place, **shown))
    await upload(admin, space, data=b"newer")
    path = f"/v1/documents/{document}"
    view = (await admin.http.get(path)).json()
    assert (view["version"], view["live_version"], view["searchable"], view["state"]) == (2, 1, True, "received")
    stored = await admin.http.get(f"{path}/text")
    assert (stored.text, stored.headers["content-type"]) == (TEXT, "text/plain; charset=utf-8")
    shown_chunks = await all_items(admin, f"{path}/chunks", limit=1)
    assert [each["text"] for each in shown_chunks] == [TEXT[each["start"] : each["end"]] for each in shown_chunks]
    assert [each["ordinal"] for each in shown_chunks] == [0, 1]
    assert await all_items(admin, f"{path}/chunks", version=2) == []
    assert (await admin.http.get(f"{path}/text", params={"version": 2})).status_code == 404
    assert (await admin.http.get(f"{path}/file")).content == b"# Leave\n\n30 days."
    assert (await admin.http.get(f"{path}/file", params={"version": 2})).content == b"newer"


async def test_a_removed_document_is_gone_with_the_reply(admin: Person) -> None:
    space = await space_of(admin)
    document = (await upload(admin, space))["document_id"]
    reply = await admin.http.delete(f"/v1/documents/{document}")
    assert (reply.status_code, list(reply.json())) == (202, ["run_id"])
    for part in ("", "/text", "/file", "/chunks", "/versions", "/history"):
        assert (await admin.http.get(f"/v1/documents/{document}{part}")).status_code == 404
    assert await all_items(admin, "/v1/documents") == []
    assert (await upload(admin, space))["document_id"] != document


async def test_work_is_cancelled_and_only_what_failed_is_tried_again(admin: Person) -> None:
    space = await space_of(admin)
    receipt = await upload(admin, space)
    path = f"/v1/documents/{receipt['document_id']}"
    assert (await admin.http.post(f"{path}/retry")).status_code == 409
    cancelled = await admin.http.post(f"{path}/cancel")
    assert (cancelled.status_code, cancelled.json()) == (202, {"run_id": receipt["run_id"]})
    assert (await admin.http.post(f"/v1/runs/{receipt['run_id']}/cancel")).status_code == 202
    removal = (await admin.http.delete(path)).json()["run_id"]
    assert (await admin.http.post(f"/v1/runs/{removal}/cancel")).json()["type"].endswith("not_cancellable")
    kinds = [each["kind"] for each in await all_items(admin, "/v1/runs", limit=1)]
    assert kinds == ["remove", "ingest"]
    assert [each["kind"] for each in await all_items(admin, "/v1/runs", kind="remove")] == ["remove"]


async def test_a_removed_space_hides_all_it_had(admin: Person) -> None:
    space = await space_of(admin)
    document = (await upload(admin, space))["document_id"]
    assert (await admin.http.delete(f"/v1/spaces/{space}")).status_code == 202
    assert (await admin.http.get("/v1/spaces/handbook")).status_code == 404
    assert (await admin.http.get(f"/v1/documents/{document}")).status_code == 404
    assert await space_of(admin) != space
