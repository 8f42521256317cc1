"""The part of plotly.js that draws what a page has."""

from importlib import resources

import pytest

from numaplan.analyzer.report.plotly_script import part_of, plotly_script

BEFORE = '"use strict";var Plotly=(()=>{var W=(f,m)=>()=>(m||f((m={exports:{}}).exports,m),m.exports);'
BUNDLE = {
    "low": "var low=W(e=>{e.low=1});",
    "bar": 'var bar=W((e,m)=>{m.exports={name:"bar",uses:low()}});',
    "outer_bar": "var outer_bar=W((e,m)=>{m.exports=bar()});",
    "globe": 'var globe=W((e,m)=>{var core=3;m.exports={name:"globe",text:".low"}});',
    "outer_globe": "var outer_globe=W((e,m)=>{m.exports=globe()});",
    "core": "var core=W((e,m)=>{m.exports={register(all){}}});",
    "last": "var last=W((e,m)=>{var c=core();c.register([outer_bar(),outer_globe()]);m.exports=c});"
    "return last()})();",
}
SCRIPT = BEFORE + "".join(BUNDLE.values())


def names(script: str) -> set[str]:
    return {name for name, text in BUNDLE.items() if text in script}


def test_what_a_kind_of_chart_needs_is_kept_and_no_more() -> None:
    bars, globes = part_of(SCRIPT, {"bar"}), part_of(SCRIPT, {"globe"})
    assert names(bars) == {"low", "bar", "outer_bar", "core"}
    assert names(globes) == {"globe", "outer_globe", "core"}
    assert bars.startswith(BEFORE) and bars.endswith(
        "c.register([outer_bar()]);m.exports=c});return last()})();"
    )
    assert part_of(SCRIPT, {"globe", "bar"}).count("register([outer_bar(),outer_globe()])") == 1
    assert names(part_of(SCRIPT, ())) == {"core"}


def test_nothing_is_left_around_it_but_its_licence() -> None:
    licence = "/**\n* plotly.js\n*/\n"
    head = "(\n  function(root, factory) {\n    root.moduleName = factory();\n} (this, () => {\n"
    tail = "\nwindow.Plotly = Plotly;\n"
    script = part_of(licence + head + SCRIPT + tail + "return Plotly;\n}));", {"bar"})
    assert script == licence + part_of(SCRIPT, {"bar"}) + tail


def test_a_module_that_is_made_in_another_way_is_kept_with_the_one_before_it() -> None:
    second = "var late=V((e)=>{e.late=2});"
    script = (BEFORE + "var V=f=>()=>f({});" + "".join(BUNDLE.values())).replace(
        BUNDLE["globe"], BUNDLE["globe"] + second
    )
    assert second not in part_of(script, {"bar"}) and second in part_of(script, {"globe"})
    used = script.replace("e.low=1", "e.low=late()")
    assert second in part_of(used, {"bar"})


@pytest.mark.parametrize(
    "script",
    [
        "",
        "var x=1;",
        SCRIPT.replace("register", "enter"),
        SCRIPT.replace('name:"bar"', 'name:"line"'),
        SCRIPT * 2,
    ],
)
def test_of_a_script_that_looks_different_nothing_is_taken(script: str) -> None:
    assert part_of(script, {"bar"}) == ""


def test_plotly_s_own_script_is_as_expected() -> None:
    whole = resources.files("plotly").joinpath("package_data", "plotly.min.js").read_text("utf-8")
    part = plotly_script(frozenset({"scatter", "bar", "heatmap"}))
    assert len(part) < 0.4 * len(whole)
    assert plotly_script(frozenset({"scatter", "no such chart"})) == whole
