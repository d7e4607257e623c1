"""A software bill of materials: CycloneDX 1.5 as JSON."""

import datetime
import json
import tomllib
import uuid

from releasing import dependencies
from releasing.facts import ROOT


def write(facts, target):
    root, graph = dependencies.shipped(facts)
    packages = dependencies.packages(facts.metadata)
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    hashes = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock["package"]}
    components = [component(packages[crate], hashes) for crate in graph if crate != root]
    edges = {purl(packages[crate]): [purl(packages[used]) for used in uses] for crate, uses in graph.items()}
    for crate in graph:
        if packages[crate]["name"] == "libsqlite3-sys":
            sqlite = c_library("sqlite", dependencies.sqlite_version(packages[crate]), "blessing")
            components.append(sqlite)
            edges[purl(packages[crate])].append(sqlite["bom-ref"])
            edges[sqlite["bom-ref"]] = []
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{purl(packages[root])}#{facts.target}')}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.datetime.fromtimestamp(facts.epoch, datetime.timezone.utc).isoformat(),
            "component": {
                **component(packages[root], hashes),
                "type": "application",
                "externalReferences": [{"type": "vcs", "url": facts.repository}],
            },
            "properties": [{"name": "target", "value": facts.target}],
        },
        "components": sorted(components, key=lambda it: it["bom-ref"]),
        "dependencies": [{"ref": ref, "dependsOn": sorted(uses)} for ref, uses in sorted(edges.items())],
    }
    target.write_text(json.dumps(bill, indent=1) + "\n")


def component(package, hashes):
    entry = {
        "type": "library",
        "bom-ref": purl(package),
        "name": package["name"],
        "version": package["version"],
        "purl": purl(package),
    }
    if package["license"]:
        # Some crates still write the old form `MIT/Apache-2.0`.
        entry["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
    checksum = hashes.get((package["name"], package["version"]))
    if checksum:
        entry["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return entry


def c_library(name, version, licence):
    ref = f"pkg:generic/{name}@{version}"
    licences = [{"license": {"id": licence}}]
    return {"type": "library", "bom-ref": ref, "name": name, "version": version, "purl": ref, "licenses": licences}


def purl(package):
    return f"pkg:cargo/{package['name']}@{package['version']}"
