"""Text for the repair of pipelines may come from a model: whatever it holds, only legal passes come out."""

import re

import pytest

from core.sandbox.service import open_sandbox
from llvm_tuning.repair.catalogue import CONTAINERS, PassCatalogue
from llvm_tuning.repair.preflight import refusal
from llvm_tuning.repair.validate import repair
from llvm_tuning.toolchain.discover import discover

HOSTILE = {
    "nul": "function(sroa)\0-load=/x.so",
    "surrogate": "\ud800,function(sroa)",
    "line break": "function(sroa)\n-load=/x.so",
    "another option": "function(sroa) -load=/x.so",
    "shell": "function(sroa),$(touch owned),`id`",
    "response file": "@/etc/passwd",
    "a file to read": "sample-profile,memprof-use<profile-filename=/etc/passwd>,function(sroa)",
    "a file to write": "function(dot-cfg,sroa)",
    "a crash on demand": "trigger-crash-module,trigger-verifier-error,function(sroa)",
    "deep": "function(" * 5_000,
    "deep and alternating": "function(cgscc(" * 2_000 + "sroa",
    "a flood of unknown names": ",".join(f"sro{i}" for i in range(6_000)),
    "a flood of commas": "," * 40_000,
    "a long number": "function(simplifycfg<bonus-inst-threshold=" + "9" * 9_000 + ">)",
    "other digits": "function(simplifycfg<bonus-inst-threshold=\u0664>)",
    "a look-alike letter": "function(\u0455roa)",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_gives_only_legal_passes_that_opt_runs(text):
    tools = discover()
    legal = PassCatalogue.of(tools)
    pipeline = repair(text, legal).pipeline
    for _, item in pipeline.walk():
        assert item.name in legal.passes or item.name in CONTAINERS or item.head() in legal.directives
    assert re.fullmatch(r"[A-Za-z0-9<>(),;=-]*", pipeline.text())
    assert refusal(open_sandbox(), tools, pipeline) is None
