# SPDX-License-Identifier: GPL-2.0-or-later
# Checks a file of SARIF by what section 3 of the specification requires of the objects in it: python3 sarif.py FILE
import json
import re
import sys

LEVELS = {"none", "note", "warning", "error"}
URI = re.compile(r"([a-z]+:)?[A-Za-z0-9/._~%-]*")


def check_message(message):
    assert isinstance(message["text"], str) and message["text"]


def check_location(location, run):
    if "physicalLocation" in location:
        artifact = location["physicalLocation"]["artifactLocation"]
        assert URI.fullmatch(artifact["uri"]), artifact["uri"]
        assert not re.search(r"%(?![0-9A-F]{2})", artifact["uri"]), artifact["uri"]
        if "uriBaseId" in artifact:
            assert artifact["uriBaseId"] in run["originalUriBaseIds"]
            assert not artifact["uri"].startswith(("/", "file:"))
        if "region" in location["physicalLocation"]:
            assert location["physicalLocation"]["region"]["startLine"] >= 1
    for logical in location.get("logicalLocations", []):
        assert isinstance(logical["fullyQualifiedName"], str)
        assert all(ord(c) >= 0x20 for c in logical["fullyQualifiedName"])


def check_result(result, run):
    rules = run["tool"]["driver"]["rules"]
    check_message(result["message"])
    assert result["level"] in LEVELS
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert isinstance(result["locations"], list)
    for location in result["locations"]:
        check_location(location, run)
    for stack in result["stacks"]:
        check_message(stack["message"])
        assert isinstance(stack["frames"], list)
        for frame in stack["frames"]:
            check_location(frame["location"], run)
    assert all(isinstance(v, str) for v in result["partialFingerprints"].values())


def check(log):
    assert log["version"] == "2.1.0" and log["$schema"].startswith("https://")
    for run in log["runs"]:
        driver = run["tool"]["driver"]
        assert driver["name"]
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(set(ids)) == len(ids)
        for rule in driver["rules"]:
            check_message(rule["shortDescription"])
            check_message(rule["fullDescription"])
            assert rule["defaultConfiguration"]["level"] in LEVELS
        for base in run["originalUriBaseIds"].values():
            assert "uri" not in base or base["uri"].endswith("/")
        for invocation in run["invocations"]:
            assert isinstance(invocation["executionSuccessful"], bool)
            for notification in invocation["toolExecutionNotifications"]:
                check_message(notification["message"])
                assert notification["level"] in LEVELS
        for result in run["results"]:
            check_result(result, run)


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as f:
        check(json.load(f))
