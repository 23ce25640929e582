// @ts-check
/** The chart of the throughput with uPlot, in place of the drawing of the server. */

const HEIGHT = 180;
const COUNTS = [1, 10, 100, 1_000, 10_000, 100_000].flatMap((size) => [size, 2 * size, 5 * size]); // between lines
const TIMES = [0.001, 0.01, 0.1, 1, 10].flatMap((size) => [size, 2 * size, 5 * size]).slice(0, -1); // seconds, as above
for (const minutes of [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1_440, 2_880, 7_200, 14_400]) TIMES.push(60 * minutes);
const { uPlot } = /** @type {any} */ (window);

/** @type {any} */
let chart = null;

/** @param {string} name @returns {string} a colour of the theme */
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The values of the figure: seconds, ended, in progress.
 * @param {HTMLElement} figure @returns {number[][]} */
function values(figure) {
  const series = JSON.parse(figure.dataset.series ?? "{}");
  return [series.seconds, series.ended, series.in_progress];
}

/** @param {number} seconds @returns {string} */
function duration(seconds) {
  if (seconds < 120) return `${Number(seconds.toFixed(2))} s`;
  return seconds < 7_200 ? `${Number((seconds / 60).toFixed(1))} min` : `${Number((seconds / 3_600).toFixed(1))} h`;
}

/** @param {HTMLElement} figure @param {HTMLElement} place */
function build(figure, place) {
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  const options = {
    width: place.clientWidth,
    height: HEIGHT,
    cursor: { drag: { setScale: false, x: false, y: false } },
    scales: { x: { time: false }, ended: { range: fromZero }, running: { range: fromZero } },
    axes: [
      { ...axis, incrs: TIMES, values: (/** @type {any} */ _, /** @type {number[]} */ ticks) => ticks.map(duration) },
      { ...axis, scale: "ended", incrs: COUNTS },
      { ...axis, scale: "running", side: 1, grid: { show: false }, incrs: COUNTS },
    ],
    series: [
      { label: "Time", value: (/** @type {any} */ _, /** @type {number | null} */ at) => (at === null ? "–" : duration(at)) },
      { label: "Ended", value: amount, scale: "ended", stroke: colour("--ok"), width: 2, points: { show: false } },
      {
        label: "In progress", value: amount, scale: "running", stroke: colour("--field-in_progress"),
        fill: `${colour("--field-in_progress")}55`, points: { show: false },
      },
    ],
  };
  chart = new uPlot(options, values(figure), place);
}

/** @param {any} _chart @param {number | null} number @returns {string} the value at the pointer */
function amount(_chart, number) {
  return number === null ? "–" : String(number);
}

/** @param {any} _chart @param {number} _least @param {number} most @returns {[number, number]} */
function fromZero(_chart, _least, most) {
  return [0, Math.max(1, most)];
}

/** Draw the present values; the element of the chart stays when the page is refreshed. */
function show() {
  const figure = document.getElementById("throughput");
  const place = document.getElementById("throughput-plot");
  if (!figure || !place) return;
  if (chart && place.contains(chart.root)) {
    chart.setData(values(figure));
    return;
  }
  build(figure, place);
  resized.observe(place);
}

const resized = new ResizeObserver(([{ target }]) => {
  if (target.clientWidth && target.clientWidth !== chart?.width) {
    chart?.setSize({ width: target.clientWidth, height: HEIGHT });
  }
});

document.addEventListener("htmx:after:swap", show);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  chart?.destroy();
  chart = null;
  show();
});
show();
