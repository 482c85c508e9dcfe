"""Asks the installed opt, in the sandbox, whether it runs a pipeline, and drops the items that it refuses."""

from core.sandbox.policy import Sandbox
from llvm_tuning.repair.catalogue import PassCatalogue
from llvm_tuning.repair.pipeline import Pipeline
from llvm_tuning.repair.validate import Dropped, Repaired, repair
from llvm_tuning.toolchain.discover import Toolchain
from llvm_tuning.toolchain.routes import optimize

TINY_MODULE = b"""
define internal i64 @twice(i64 %x) {
  %y = mul i64 %x, 2
  ret i64 %y
}

define i64 @sum(ptr %p, i64 %n) {
entry:
  br label %outer
outer:
  %j = phi i64 [ 0, %entry ], [ %k, %latch ]
  br label %inner
inner:
  %i = phi i64 [ 0, %outer ], [ %next, %inner ]
  %s = phi i64 [ 0, %outer ], [ %t, %inner ]
  %a = getelementptr i64, ptr %p, i64 %i
  %v = load i64, ptr %a
  %w = call i64 @twice(i64 %v)
  %t = add i64 %s, %w
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %inner, label %latch
latch:
  store i64 %t, ptr %p
  %k = add i64 %j, 1
  %again = icmp ult i64 %k, 4
  br i1 %again, label %outer, label %done
done:
  ret i64 %t
}
"""
"""A call and two nested loops that load and store: enough that most passes change something."""

MOST_DROPPED = 8
"""Items that may be dropped on opt's word; beyond it the whole pipeline is given up."""


def refusal(box: Sandbox, tools: Toolchain, pipeline: Pipeline) -> str | None:
    """Return why opt does not run the pipeline on a tiny module (its first line), or None: it does.

    Raises:
        ComplabError: there is no opt.
    """
    built = optimize(box, tools, TINY_MODULE, pipeline.text())
    if built.code is not None:
        return None
    return next(iter(built.message.splitlines()), "opt failed and said nothing")[:300]


def repair_for(box: Sandbox, tools: Toolchain, text: str) -> Repaired:
    """Repair a text by rule, then drop each item that opt refuses all the same; what is left, opt runs.

    The result is empty when more than `MOST_DROPPED` items are refused.

    Raises:
        ComplabError: there is no opt.
    """
    repaired = repair(text, PassCatalogue.of(tools))
    pipeline, dropped = repaired.pipeline, list(repaired.dropped)
    for _ in range(MOST_DROPPED):
        why = refusal(box, tools, pipeline)
        if why is None:
            break
        place = _offender(box, tools, pipeline)
        dropped.append(Dropped(item=pipeline.get(place).text()[:200], why=f"opt refuses it: {why}"))
        pipeline = pipeline.remove(place)
    else:
        if refusal(box, tools, pipeline) is not None:
            dropped.append(
                Dropped(item=pipeline.text()[:200], why=f"opt refuses more than {MOST_DROPPED} of its items")
            )
            pipeline = Pipeline(items=())
    return Repaired(pipeline=pipeline, dropped=tuple(dropped), changed=repaired.changed)


def _offender(box: Sandbox, tools: Toolchain, pipeline: Pipeline) -> tuple[int, ...]:
    """Return the path of the pass at which a refused pipeline fails: the last one of its shortest refused beginning.

    Passes run in the order of the text, so a beginning that fails makes all longer ones fail.
    """
    passes = [path for path, item in pipeline.walk() if item.body is None]
    runs, fails = 0, len(passes)
    while fails - runs > 1:
        middle = (runs + fails) // 2
        beginning = pipeline
        for path in reversed(passes[middle:]):
            beginning = beginning.remove(path)
        if refusal(box, tools, beginning) is None:
            runs = middle
        else:
            fails = middle
    return passes[fails - 1]
