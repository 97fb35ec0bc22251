"""An asset that has EMR run offload_job.py and shows what it reported. An example, to be adapted.

`PipesEMRClient` starts a cluster for the run and ends it; `PipesEMRServerlessClient` and
`PipesEMRContainersClient` (EMR on EKS) take other parameters and the same job. Put the job and the
wheel of this version where EMR reads them, and name the places by the variables below.

EMR_RELEASE has to name a release with Spark 4.1 or newer and Python 3.11 or newer on its machines.
EMR 7 and older have Spark 3.5 and older, which cannot run the job, so no release is named here.
"""

import os
import re
from typing import Any

import dagster as dg

# Per core: three blocks of 64 MiB and 150 MiB (docs/spark.md#memory). Here four cores an executor.
MEMORY_OVERHEAD_MIB = 1488


def job_flow(ledger_ids: list[int], *, job: str, logs: str, release: str) -> dict[str, Any]:
    """What EMR is asked to start. `job` is the place of offload_job.py, `logs` of EMR's logs.

    ValueError for a `release` whose Spark is too old.
    """
    if re.match(r"emr-[1-7]\.", release):
        raise ValueError(
            f"EMR_RELEASE is {release}, which has Spark 3.5 or older; offload_job.py needs Spark 4.1 "
            "and Python 3.11: name a release that has them"
        )
    # fmt: off
    submit = [
        "spark-submit", "--deploy-mode", "cluster",
        "--conf", "spark.executor.cores=4",
        "--conf", f"spark.executor.memoryOverhead={MEMORY_OVERHEAD_MIB}m",
        "--conf", "spark.speculation=false",
        job, *(str(ledger_id) for ledger_id in ledger_ids),
    ]
    # fmt: on
    return {
        "Name": "tierkeeper",
        "LogUri": logs,
        "ReleaseLabel": release,
        "Applications": [{"Name": "Spark"}],
        "JobFlowRole": "EMR_EC2_DefaultRole",  # its role is the workers' key to the bucket
        "ServiceRole": "EMR_DefaultRole",
        "Instances": {
            "KeepJobFlowAliveWhenNoSteps": False,
            "InstanceCount": 3,
            "MasterInstanceType": "m6i.xlarge",
            "SlaveInstanceType": "m6i.xlarge",
        },
        "Steps": [
            {
                "Name": "offload",
                "ActionOnFailure": "TERMINATE_CLUSTER",
                "HadoopJarStep": {"Jar": "command-runner.jar", "Args": submit},
            }
        ],
    }


class OffloadConfig(dg.Config):
    ledger_ids: list[int]


@dg.asset
def emr_offload(context: dg.AssetExecutionContext, config: OffloadConfig) -> dg.MaterializeResult:
    """Offload the ledgers on EMR."""
    import boto3
    from dagster_aws.pipes import PipesEMRClient, PipesS3MessageReader

    bucket = os.environ["PIPES_BUCKET"]
    client = PipesEMRClient(
        message_reader=PipesS3MessageReader(bucket=bucket, client=boto3.client("s3"))
    )
    flow = job_flow(
        config.ledger_ids,
        job=f"s3://{bucket}/offload_job.py",
        logs=f"s3://{bucket}/logs/",
        release=os.environ["EMR_RELEASE"],
    )
    done = client.run(context=context, run_job_flow_params=flow)
    return dg.MaterializeResult(metadata={"ledgers": [*done.get_custom_messages()]})


defs = dg.Definitions(assets=[emr_offload])
