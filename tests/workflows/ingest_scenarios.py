from schemas.workflow_contracts import INGEST_DOCUMENT
from tests.workflows.scenarios import Scenario
COMPLETE = Scenario(INGEST_DOCUMENT, "complete", {"document_id": "doc-1", "version": 1})
