"use strict";
// Draws the figures that the page carries as JSON. Names that begin with an underscore are ours: they say what a
// trace means (a ramp, a node), and become colours here, so that light and dark differ in one place only.

const LIGHT = {
  ramp: ["#f3f6fa", "#c9dcef", "#8fb9de", "#4c8fc7", "#1f62a0", "#0b3563"],
  nodes: ["#2563a8", "#d97706", "#0f8a6a", "#b4457e", "#6d55b5", "#7a8b1a", "#c2412d", "#8794a3"],
  ink: "#1b2430", soft: "#5b6675", line: "#dde2e9", border: "#d2560b", card: "#ffffff",
  full: 0.6, onFull: "#ffffff", // the share of the ramp from which text on it must be of the other ink
};
const DARK = {
  ramp: ["#1d2530", "#20405f", "#256394", "#3d8bc6", "#7fb8e6", "#dcefff"],
  nodes: ["#6ea8e6", "#f0a548", "#3fc19c", "#e07fb2", "#a693e8", "#b5c54a", "#ee7d68", "#7c8a9a"],
  ink: "#e4e9f0", soft: "#9aa6b5", line: "#2d3643", border: "#ff9a4d", card: "#1a2029",
  full: 0.55, onFull: "#10161e",
};
const FONT = { family: "system-ui, sans-serif", size: 12 };
const LARGER = 1.2; // than that, the words above a bar
const NUMBER = "88M", GAP = 18, TITLE = 26; // a usual label; px beside a label's text, and of a title
const BAR = { thickness: 12, xpad: 10 }; // px, of the bar that explains colours
const BELOW = 0.6; // of a chart's width, that labels below it have
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const narrow = window.matchMedia("(max-width: 860px)");

async function inflate(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let index = 0; index < bytes.length; index++) bytes[index] = letters.charCodeAt(index);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

function colorscale(kind, theme) {
  const last = theme.ramp.length - 1;
  return theme.ramp.map((color, index) => [kind === "root" ? (index / last) ** 2 : index / last, color]);
}

function styledTrace(trace, theme) {
  const styled = { ...trace };
  const node = (index) => theme.nodes[index % theme.nodes.length];
  if ("_ramp" in trace) {
    styled.colorscale = colorscale(trace._ramp, theme);
    styled.colorbar = { ...BAR, ticklabeloverflow: "allow", outlinewidth: 0, tickformat: "~s", ...trace.colorbar };
    if (narrow.matches) {
      const above = { orientation: "h", len: 0.9, x: 0.5, y: 1.02, yanchor: "bottom" };
      const title = trace._lanes ? undefined : { ...styled.colorbar.title, side: "top" };
      styled.colorbar = { ...styled.colorbar, title, thickness: 8, ...(trace._lanes ? {} : above) };
    }
    styled.xgap = styled.ygap = trace._names.length <= 40 && !trace._lanes ? 1 : 0;
    const unit = trace._unit;
    if (trace._lanes) {
      styled.hovertemplate =
        `thread %{text}, %{x:.4s} ${trace._time_unit}: %{z:.3s} ${unit}<extra></extra>`;
      styled.text = trace.z.map((row, y) => row.map(() => trace._names[y]));
    } else {
      const error = (y, x) => (trace._errors ? " ± " + Number(trace._errors[y][x].toPrecision(2)) : "");
      styled.text = undefined;
      // Made as it is asked for: a quarter of a million of them take long.
      const cell = (y) => ({ get: (_, x) => [trace._names[y], trace._names[x], error(y, x)] });
      styled.customdata = trace.z.map((_, y) => new Proxy([], cell(y)));
      styled.hovertemplate =
        "%{customdata[0]} – %{customdata[1]}: %{z:.3s}%{customdata[2]} " + unit + "<extra></extra>";
    }
  } else if ("_nodes" in trace) {
    const color = Array.isArray(trace._nodes) ? trace._nodes.map(node) : node(trace._nodes);
    if (trace.type === "scatter") styled.line = { width: 1.5, ...trace.line, color };
    else styled.marker = { color, line: { width: 0 } };
  }
  return styled;
}

// Room for what stands around a chart, so that plotly need not draw it again to make some.
function margins(figure, width) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = `${FONT.size}px ${FONT.family}`;
  const wide = (text) => pen.measureText(text.replace(/<[^>]*>/g, "")).width;
  const room = { x: 0, y: 0 };
  for (const trace of figure.data) {
    for (const letter of ["x", "y"]) {
      const axis = figure.layout[(trace[letter + "axis"] || letter).replace(letter, letter + "axis")] || {};
      if (axis.showticklabels === false) continue;
      const names = axis.ticktext || trace[letter].filter((place) => typeof place === "string");
      const longest = Math.max(...(names.length ? names : [NUMBER]).map(wide));
      const turned = letter === "y" || names.length * (longest + FONT.size) > width * BELOW;
      const title = axis.title ? TITLE : 0;
      room[letter] = Math.max(room[letter], title + (turned ? longest : FONT.size) + GAP);
    }
  }
  const around = { l: Math.ceil(room.y), r: 8, t: 12, b: Math.ceil(room.x) };
  const bars = figure.data.filter((trace) => "_ramp" in trace && trace.showscale !== false);
  if (!bars.length || figure.layout.showlegend || narrow.matches) return around;
  const numbers = BAR.thickness + GAP / 2 + wide(NUMBER);
  const beside = bars.map(({ colorbar }) => Math.max(numbers, LARGER * wide(colorbar.title.text)));
  return { ...around, r: Math.ceil(2 * BAR.xpad + Math.max(...beside)), autoexpand: false };
}

function styledLayout(figure, theme, width) {
  const { layout } = figure;
  const styled = {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { ...FONT, color: theme.ink },
    margin: margins(figure, width), showlegend: false,
    hoverlabel: { bgcolor: theme.card, bordercolor: theme.line, font: { color: theme.ink } },
    ...layout,
  };
  for (const key of Object.keys(styled).filter((name) => /^[xy]axis\d*$/.test(name))) {
    const plain = { gridcolor: theme.line, linecolor: theme.line, zeroline: false };
    styled[key] = { automargin: true, ticklabeloverflow: "allow", ...plain, ...styled[key] };
    if (styled[key].title) styled[key].title = { standoff: 10, ...styled[key].title };
  }
  styled.shapes = (layout.shapes || []).map((shape) => ({
    ...shape,
    line: shape._thin ? { color: theme.soft, width: 1.2, dash: "dash" } : { color: theme.border, width: 1.5 },
  }));
  return styled;
}

// The numbers in the cells of a small heat map, in whichever ink stands out from the cell.
function written(trace, theme) {
  return trace.z.flatMap((row, y) => row.map((value, x) => ({
    text: trace._written[y][x], showarrow: false,
    x: trace.x[x], y: trace.y[y], xref: trace.xaxis, yref: trace.yaxis,
    font: { size: narrow.matches ? 9 : 12, color: value > theme.full * trace.zmax ? theme.onFull : theme.ink },
  })));
}

function draw(figure, place) {
  const theme = dark.matches ? DARK : LIGHT;
  const data = figure.data.map((trace) => styledTrace(trace, theme));
  const options = { responsive: true, displaylogo: false, displayModeBar: false };
  const layout = styledLayout(figure, theme, place.clientWidth);
  const texts = figure.data.filter((trace) => "_written" in trace).flatMap((trace) => written(trace, theme));
  layout.annotations = [...(figure.layout.annotations || []), ...texts];
  return Plotly.react(place, data, layout, options);
}

function makeSection(figure, alone) {
  const section = document.createElement("section");
  section.id = figure.id;
  section.className = figure.shape + (figure.shape === "tall" || figure.full || alone ? " full" : "");
  const title = document.createElement("h2");
  title.textContent = figure.title;
  const about = document.createElement("p");
  about.className = "about";
  about.textContent = figure.about;
  const place = document.createElement("div");
  place.className = "plot";
  section.append(title, about, place);
  document.getElementById("figures").append(section);
  return place;
}

function inWindow(place) {
  const { top, bottom } = place.getBoundingClientRect();
  return bottom > 0 && top < window.innerHeight;
}

async function main() {
  const packed = ["plotly-data", "figure-data"].map((id) => inflate(document.getElementById(id).textContent));
  const script = document.createElement("script");
  script.textContent = await packed[0];
  document.head.append(script);
  const figures = JSON.parse(await packed[1]);
  const places = figures.map((figure) =>
    makeSection(figure, figures.filter((other) => other.shape === figure.shape).length === 1));
  const drawAll = async () => {
    const left = [...figures.keys()];
    while (left.length) {
      const first = left.findIndex((index) => inWindow(places[index]));
      const [index] = left.splice(Math.max(first, 0), 1);
      await draw(figures[index], places[index]);
      // It is shown, and the page scrolled, before the next is drawn.
      await new Promise((shown) => setTimeout(shown));
    }
  };
  document.getElementById(location.hash.slice(1))?.scrollIntoView(); // which may be a section just made
  await drawAll();
  dark.addEventListener("change", drawAll);
  narrow.addEventListener("change", drawAll);
  document.body.dataset.charts = String(places.filter((place) => place.querySelector(".main-svg")).length);
  document.body.dataset.state = "drawn";
}

main().catch((error) => {
  document.body.dataset.state = "failed";
  const note = document.createElement("p");
  note.className = "warnings";
  note.textContent = "The charts could not be drawn (" + error.message + "). A browser from 2023 or later is needed.";
  document.getElementById("figures").replaceChildren(note);
  console.error(error);
});
