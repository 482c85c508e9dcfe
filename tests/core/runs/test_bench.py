from core.runs.bench import run


def test_the_bench_reports_its_bar():
    report = run(quick=True)
    assert report.name == "runs"
    assert report.figures[0].bar == "< 5"
    assert report.figures[0].holds == (report.figures[0].value < 5)
