"""An event as OpenLineage's client has it: its standard facets and the address of each schema.

Owns: which release of the standard an event follows is that of the package that is installed. Our
own facets are of docs/schemas/openlineage/facets-1.json, by the URN that is its `$id`.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from tiering_assets.catalogue.openlineage.datasets import (
    LEDGER_FACET,
    PUBLICATION_FACET,
    RELEASE_FACET,
    ReadDataset,
    SaidEvent,
    WrittenDataset,
)

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, OutputDataset, RunEvent

PRODUCER: Final = "urn:tierkeeper:poster"
FACETS: Final = "urn:tierkeeper:openlineage:facets:1"
RUN_FACET: Final = "tierkeeper_run"
OWN: Final[Mapping[str, str]] = {
    RUN_FACET: "TierkeeperRunFacet",
    LEDGER_FACET: "TierkeeperLedgerDatasetFacet",
    PUBLICATION_FACET: "TierkeeperPublicationDatasetFacet",
    RELEASE_FACET: "TierkeeperReleaseDatasetFacet",
}
"""What each facet of ours is called in its schema."""


def run_event(said: SaidEvent, *, namespace: str, cluster: str) -> RunEvent:
    """`namespace` is that of jobs. ValueError for what the standard does not allow."""
    from openlineage.client.event_v2 import Job, Run, RunEvent, RunState
    from openlineage.client.facet_v2 import (
        error_message_run,
        job_type_job,
        processing_engine_run,
    )

    facets: dict[str, Any] = {
        RUN_FACET: own_facet(RUN_FACET, said.run),
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version=version("tierkeeper"), name="tierkeeper", producer=PRODUCER
        ),
    }
    if said.why is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(
            message=said.why, programmingLanguage="PYTHON", producer=PRODUCER
        )
    kind = job_type_job.JobTypeJobFacet(
        processingType="BATCH", integration="TIERKEEPER", jobType="JOB", producer=PRODUCER
    )
    return RunEvent(
        eventType=RunState(said.type.value),
        eventTime=said.at.isoformat(),
        producer=PRODUCER,
        run=Run(runId=str(said.run_id), facets=facets),
        job=Job(namespace=namespace, name=f"{cluster}.{said.job}", facets={"jobType": kind}),
        inputs=[_input(one) for one in said.inputs],
        outputs=[_output(one) for one in said.outputs],
    )


def own_facet(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """A facet of ours."""
    return {"_producer": PRODUCER, "_schemaURL": f"{FACETS}#/$defs/{OWN[name]}", **values}


def _input(said: ReadDataset) -> InputDataset:
    from openlineage.client.event_v2 import InputDataset
    from openlineage.client.facet_v2 import input_statistics_input_dataset

    facets: dict[str, Any] = {}
    if said.bytes is not None:
        facets["inputStatistics"] = input_statistics_input_dataset.InputStatisticsInputDatasetFacet(
            rowCount=said.messages, size=said.bytes, producer=PRODUCER
        )
    return InputDataset(namespace=said.namespace, name=said.name, inputFacets=facets)


def _output(said: WrittenDataset) -> OutputDataset:
    from openlineage.client.event_v2 import OutputDataset
    from openlineage.client.facet_v2 import (
        dataset_version_dataset,
        output_statistics_output_dataset,
        storage_dataset,
    )

    layer, form = said.storage
    facets: dict[str, Any] = {
        "storage": storage_dataset.StorageDatasetFacet(
            storageLayer=layer, fileFormat=form, producer=PRODUCER
        ),
        **{name: own_facet(name, values) for name, values in said.own.items()},
    }
    if said.version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(
            datasetVersion=said.version, producer=PRODUCER
        )
    statistics: dict[str, Any] = {}
    if said.bytes is not None:
        statistics["outputStatistics"] = (
            output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
                rowCount=said.messages, size=said.bytes, fileCount=1, producer=PRODUCER
            )
        )
    return OutputDataset(
        namespace=said.namespace, name=said.name, facets=facets, outputFacets=statistics
    )
