// Draws the charts of a report from the data in the page. It computes only positions on the screen: all numbers, ranges,
// ticks and line styles (`chart.layout`) come from assay. Text from records is inserted as text (textContent, canvas),
// never as markup.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const charts = new Map(JSON.parse(document.getElementById("data").textContent).map((chart) => [chart.id, chart]));
  const drawn = new Map();
  // Rows added to a table at a time: 36,000 at once would block the page for seconds.
  const ROWS = 500;

  // ---- text

  const element = (name, className, text) => {
    const made = document.createElement(name);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const node = (parent, name, attributes, text) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.append(made);
    return made;
  };
  const button = (text, action) => {
    const made = element("button", "", text);
    made.type = "button";
    made.addEventListener("click", action);
    return made;
  };
  // Three significant digits, thousands separators: as in the tables.
  const figure = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size >= 99.95) return Math.round(value).toLocaleString("en-US");
    if (size === 0) return "0";
    const decimals = size >= 9.995 ? 1 : size >= 0.9995 ? 2 : size >= 0.09995 ? 3 : size >= 0.009995 ? 4 : 5;
    return value.toFixed(decimals);
  };
  const tick = (value) => Number(value.toPrecision(6)).toLocaleString("en-US", { maximumFractionDigits: 6 });
  const percentile = (nines) => {
    if (nines === 0) return "fastest";
    const share = 100 * (1 - 10 ** -nines);
    const decimals = Math.max(0, Math.ceil(nines - 1) + (Number.isInteger(nines) ? -1 : 1));
    return Number(share.toFixed(decimals)) + "%";
  };
  const across = (chart, value) => {
    if (value === null || value === undefined) return "";
    if (chart.x.scale === "nines") return percentile(value);
    if (chart.x.label === "sessions") return figure(value) + (value === 1 ? " session" : " sessions");
    return clock(value);
  };
  // 0:05, 1:00, 1:00:00; tenths only if not zero.
  const clock = (seconds) => {
    const tenths = Math.round(seconds * 10);
    const whole = Math.floor(tenths / 10);
    const [hours, minutes, left] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
    const two = (number) => String(number).padStart(2, "0");
    const text = hours > 0 ? `${hours}:${two(minutes)}:${two(left)}` : `${minutes}:${two(left)}`;
    return tenths % 10 ? `${text}.${tenths % 10}` : text;
  };
  const TIME_STEPS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];

  // ---- colors

  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // ---- axes

  // The ticks of the whole range, if enough of them are visible; otherwise new ones.
  const ticksOf = (range, min, max, time) => {
    const inside = range.ticks.filter((tick) => tick.at >= min && tick.at <= max);
    if (inside.length > 1 || (inside.length === range.ticks.length && inside.length > 0)) return inside;
    if (range.logarithmic) return [min, max].map((at) => ({ at, text: tick(at) }));
    const raw = (max - min) / 6;
    const scale = 10 ** Math.floor(Math.log10(raw));
    const step = (time && TIME_STEPS.find((step) => step >= raw)) || [1, 2, 5, 10].find((step) => step * scale >= raw) * scale;
    const own = [];
    for (let at = Math.ceil(min / step) * step; at <= max; at += step) own.push({ at, text: time ? clock(at) : tick(at) });
    return own;
  };
  // Only those whose labels do not overlap.
  const sideBySide = (ticks, place) => {
    let free = -Infinity;
    return ticks.filter(({ at, text }) => {
      const half = 3.4 * text.length;
      if (place(at) - half < free) return false;
      free = place(at) + half + 8;
      return true;
    });
  };
  const axis = (of, values) => ({
    stroke: style("--soft"),
    font: "12px system-ui, sans-serif",
    labelFont: "12px system-ui, sans-serif",
    label: of.label,
    size: 34,
    labelSize: 18,
    labelGap: 0,
    grid: { stroke: style("--grid"), width: 1 },
    ticks: { stroke: style("--grid"), width: 1 },
    filter: (u, splits) => splits,
    ...values,
  });
  const Y_WIDTH = 76;
  const xAxis = (chart) => {
    const range = chart.layout.x;
    const time = chart.x.scale === "time";
    const along = (value) => (range.logarithmic ? Math.log(value) : value);
    const seen = (u, min, max) => {
      const width = u.width - Y_WIDTH - (isNamed(chart, u.width) ? END_ROOM : 20);
      return sideBySide(ticksOf(range, min, max, time), (at) => ((along(at) - along(min)) / (along(max) - along(min))) * width);
    };
    return axis(chart.x, {
      splits: (u, number, min, max) => seen(u, min, max).map((tick) => tick.at),
      values: (u, splits) => splits.map((at) => range.ticks.find((tick) => tick.at === at)?.text ?? (chart.x.scale === "nines" ? percentile(at) : time ? clock(at) : tick(at))),
    });
  };
  const yAxis = (chart) => {
    const range = chart.layout.y;
    return axis(chart.y, {
      size: Y_WIDTH,
      splits: (u, number, min, max) => ticksOf(range, min, max).map((tick) => tick.at),
      values: (u, splits) => splits.map((at) => range.ticks.find((tick) => tick.at === at)?.text ?? tick(at)),
    });
  };
  // The visible part fills the height, with the same margin as the whole.
  const yScale = ({ layout: { y } }) =>
    y.logarithmic
      ? { distr: 3, log: 10, range: (u, min, max) => (min > 0 ? [min / y.room, max * y.room] : [y.low, y.high]) }
      : y.low > 0
        ? { range: () => [y.low, y.high] }
        : { range: (u, min, max) => [0, max > 0 ? max * y.room : y.high] };

  // ---- marks

  // `draw`, clipped to the plot area.
  const inside = (draw) => (u) => {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    draw(u, ctx, bbox, uPlot.pxRatio, (x) => u.valToPos(x, "x", true));
    ctx.restore();
  };
  const drawMarks = (chart) => inside((u, ctx, bbox, ratio, place) => {
    chart.marks.filter((mark) => mark.kind === "stage").forEach((mark, number) => {
      const [left, right] = [place(mark.from), place(mark.to)];
      if (number % 2 === 0) {
        ctx.fillStyle = style("--stage");
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
      }
    });
    for (const mark of chart.marks.filter((mark) => mark.kind === "steady")) {
      const [left, right] = [place(mark.from), place(mark.to)];
      ctx.fillStyle = style("--steady");
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      ctx.fillStyle = style("--good");
      ctx.fillRect(left, bbox.top, right - left, 3 * ratio);
    }
    for (const mark of chart.marks.filter((mark) => mark.kind === "outage")) {
      const left = place(mark.from);
      ctx.fillStyle = style("--outage");
      ctx.fillRect(left, bbox.top, Math.max(place(mark.to) - left, 2 * ratio), bbox.height);
      ctx.fillStyle = style("--bad");
      ctx.fillRect(left, bbox.top, Math.max(place(mark.to) - left, 2 * ratio), 3 * ratio);
    }
  });
  const drawMarksOnTop = (chart) => inside((u, ctx, bbox, ratio, place) => {
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "top";
    ctx.textAlign = "left";
    let free = -Infinity;
    for (const mark of chart.marks.filter((mark) => mark.kind === "stage")) {
      const left = place(mark.from) + 4 * ratio;
      const room = place(mark.to) - left;
      const text = [mark.text, mark.text.split(" ")[0]].find((text) => ctx.measureText(text).width < room);
      if (!text || left < free) continue;
      const width = ctx.measureText(text).width;
      ctx.fillStyle = style("--paper");
      ctx.globalAlpha = 0.75;
      ctx.fillRect(left - 2 * ratio, bbox.top + 2 * ratio, width + 4 * ratio, 14 * ratio);
      ctx.globalAlpha = 1;
      ctx.fillStyle = style("--soft");
      ctx.fillText(text, left, bbox.top + 4 * ratio);
      free = left + width + 6 * ratio;
    }
    for (const mark of chart.marks.filter((mark) => mark.kind === "knee")) {
      const at = place(mark.from);
      ctx.fillStyle = style("--soft");
      ctx.fillRect(at - ratio / 2, bbox.top, ratio, bbox.height);
      if (at < free) continue;
      const width = ctx.measureText(mark.text).width;
      const beside = at + width + 6 * ratio < bbox.left + bbox.width;
      // At the bottom: the curve is at the top where the knee is.
      ctx.fillText(mark.text, beside ? at + 5 * ratio : at - width - 5 * ratio, bbox.top + bbox.height - 18 * ratio);
      free = at + width + 12 * ratio;
    }
    // A step of an experiment: a line with its name, and a bar for as long as it took. A change: a line.
    const rows = [-Infinity, -Infinity, -Infinity];
    const stages = chart.marks.some((mark) => mark.kind === "stage");
    for (const mark of chart.marks.filter((mark) => mark.kind === "step" || mark.kind === "change")) {
      const [left, right] = [place(mark.from), place(mark.to)];
      ctx.fillStyle = style(mark.kind === "change" ? "--bad" : "--soft");
      for (let y = bbox.top; y < bbox.top + bbox.height; y += 6 * ratio) ctx.fillRect(left - ratio / 2, y, ratio, 4 * ratio);
      if (right - left > 3 * ratio) ctx.fillRect(left, bbox.top + bbox.height - 4 * ratio, right - left, 4 * ratio);
      const width = ctx.measureText(mark.text).width;
      const fits = left + width + 4 * ratio < bbox.left + bbox.width;
      const start = fits ? left + 4 * ratio : left - width - 4 * ratio;
      const row = rows.findIndex((free) => free <= start);
      if (row < 0) continue;
      ctx.fillStyle = style("--ink");
      ctx.fillText(mark.text, start, bbox.top + (4 + 14 * (row + (stages ? 1 : 0))) * ratio);
      rows[row] = start + width + 6 * ratio;
    }
    ctx.fillStyle = style("--warn");
    const foot = bbox.top + bbox.height;
    for (const mark of chart.marks.filter((mark) => mark.kind === "errors")) {
      const left = place(mark.from);
      ctx.fillRect(left, foot - 7 * ratio, Math.max(place(mark.to) - left, 2 * ratio), 7 * ratio);
    }
  });

  // ---- names at the ends of lines

  const END_ROOM = 120;
  const isNamed = (chart, width) => {
    const named = chart.kind === "lines" ? chart.lines.filter((line) => !line.dots) : [];
    return width >= 560 && named.length > 1 && named.length <= 12;
  };
  // `text`, cut to `room`.
  const cut = (ctx, text, room) => {
    if (ctx.measureText(text).width <= room) return text;
    let end = text.length;
    while (end > 1 && ctx.measureText(text.slice(0, end) + "…").width > room) end--;
    return text.slice(0, end) + "…";
  };
  // Where a name belongs: at the last value that is visible, of a stacked line in the middle of its area.
  const endsOf = (chart, data, isShown, max) => {
    const ends = [];
    chart.lines.forEach((line, number) => {
      if (line.dots || !isShown(number)) return;
      for (let at = data[0].length - 1; at >= 0; at--) {
        const value = data[number + 1][at];
        if (value === null || value === undefined || data[0][at] > max) continue;
        const below = line.stacked ? own(chart, data, number, at) / 2 : 0;
        ends.push({ number, value: value - below, name: line.name });
        return;
      }
    });
    return ends;
  };
  // From top to bottom, at least `height` apart, within `low` … `high`.
  const apart = (ends, height, low, high) => {
    ends.sort((one, other) => one.y - other.y);
    ends.forEach((end, at) => (end.y = Math.max(end.y, at === 0 ? low : ends[at - 1].y + height)));
    for (let at = ends.length - 1; at >= 0; at--) ends[at].y = Math.min(ends[at].y, at === ends.length - 1 ? high : ends[at + 1].y - height);
    return ends;
  };
  const nameEnds = (chart) => (u) => {
    if (!isNamed(chart, u.width)) return;
    const { ctx, bbox } = u;
    const ratio = uPlot.pxRatio;
    const ends = endsOf(chart, u.data, (number) => u.series[number + 1].show, u.scales.x.max);
    for (const end of ends) end.y = u.valToPos(end.value, "y", true);
    ctx.save();
    ctx.font = `${11 * ratio}px system-ui, sans-serif`;
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    for (const { number, name, y } of apart(ends, 13 * ratio, bbox.top + 6 * ratio, bbox.top + bbox.height - 6 * ratio)) {
      ctx.fillStyle = style("--s" + chart.layout.looks[number].color);
      ctx.fillText(cut(ctx, name, (END_ROOM - 8) * ratio), bbox.left + bbox.width + 6 * ratio, y);
    }
    ctx.restore();
  };

  // ---- lines and heat, by uPlot

  // All lines, then the lower and upper edge of every band.
  const banded = (chart) => chart.lines.filter((line) => line.band.length > 0);
  const joined = (chart) => uPlot.join([
    ...chart.lines.map((line) => [line.x, line.y]),
    ...banded(chart).map((line) => [line.x, line.band.map((ends) => ends && ends[0]), line.band.map((ends) => ends && ends[1])]),
  ]);
  // A line's own value; a stacked line includes those below it.
  const own = (chart, data, number, index) => {
    const line = chart.lines?.[number];
    if (!line?.stacked) return data[number + 1][index];
    return data[number + 1][index] - data[chart.lines.length + 1 + 2 * banded(chart).indexOf(line)][index];
  };
  // Lines of different records rarely have a point at the same time: show the nearest of each.
  const nearest = (values, at) => {
    for (let away = 0; away < 200; away++) {
      if (values[at - away] !== undefined) return at - away;
      if (values[at + away] !== undefined) return at + away;
    }
    return at;
  };

  const groups = new Map();
  let following = false;
  const follow = (group) => (u, key) => {
    if (key !== "x" || following || !group) return;
    following = true;
    const { min, max } = u.scales.x;
    for (const other of groups.get(group)) if (other !== u) other.setScale("x", { min, max });
    following = false;
  };

  const lines = (chart, figureElement, plot, controls) => {
    const data = joined(chart);
    const marked = chart.x.scale !== "time";
    const crowded = data[0].length > 1500;
    const color = (number) => style("--s" + chart.layout.looks[number].color);
    const withDots = chart.lines.some((line) => line.dots);
    const series = chart.lines.map((line, number) => line.dots
      ? { label: line.name, stroke: color(number), paths: () => null, points: { show: true, size: 5, width: 0, stroke: "transparent", fill: color(number) + "66" } }
      : {
          label: line.name,
          stroke: color(number),
          width: marked || withDots ? 2 : crowded ? 1 : 1.5,
          alpha: crowded && !withDots && chart.lines.length > 1 ? 0.75 : 1,
          dash: chart.layout.looks[number].dash,
          points: { show: chart.x.scale !== "nines" && !withDots && data[0].length < 90, size: 6, fill: color(number) },
        });
    const ends = { label: "", stroke: "transparent", width: 0, points: { show: false } };
    const bandsOf = banded(chart).map((line) => chart.lines.indexOf(line));
    const low = (at) => chart.lines.length + 1 + 2 * at;
    const bands = bandsOf.map((number, at) => ({ series: [low(at) + 1, low(at)], fill: color(number) + (chart.lines[number].stacked ? "99" : "33") }));
    series.push(...bandsOf.flatMap(() => [ends, ends]));
    const made = uplot(chart, plot, data, series, controls, { bands });
    const toggle = (number, show) => {
      made.toggle(number, show);
      const at = bandsOf.indexOf(number);
      if (at >= 0) [low(at), low(at) + 1].forEach((series) => made.toggle(series - 1, show));
    };
    return { ...made, toggle };
  };

  const heat = (chart, figureElement, plot, controls) => {
    const middles = chart.columns.map(([from, to]) => (from + to) / 2);
    const data = [middles, middles.map(() => null)];
    const most = mostOf(chart);
    const paint = inside((u, ctx, bbox, ratio, place) => {
      const heights = chart.edges.map((edge) => u.valToPos(edge, "y", true));
      const paths = Array.from({ length: LEVELS }, () => new Path2D());
      chart.columns.forEach(([from, to], column) => {
        const [left, right] = [place(from), place(to)];
        chart.cells[column].forEach((value, row) => {
          if (value === 0) return;
          const [bottom, top] = [heights[row], heights[row + 1]];
          paths[levelOf(value, most)].rect(left, top, Math.max(1, right - left) + 0.5, bottom - top + 0.5);
        });
      });
      paths.forEach((path, number) => {
        ctx.fillStyle = heatColor(number / (LEVELS - 1));
        ctx.fill(path);
      });
    });
    const { low, high } = chart.layout.y;
    return uplot(chart, plot, data, [{ label: "", stroke: "transparent", points: { show: false } }], controls, {
      y: { distr: 3, log: 10, range: () => [low, high] },
      paint,
    });
  };

  const LEVELS = 24;
  const mostOf = (chart) => chart.cells.reduce((most, column) => Math.max(most, ...column), 0);
  const levelOf = (value, most) => Math.min(LEVELS - 1, Math.floor((LEVELS * Math.log1p((value / most) * 1000)) / Math.log1p(1000)));
  // `share`: 0 (few) … 1 (many).
  const heatColor = (share) => {
    const stops = [0, 1, 2, 3, 4, 5].map((number) => style("--h" + number));
    const at = share * (stops.length - 1);
    const [a, b] = [stops[Math.floor(at)], stops[Math.ceil(at)]].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
    return `rgb(${a.map((part, i) => Math.round(part + (b[i] - part) * (at % 1))).join(",")})`;
  };

  const uplot = (chart, plot, data, series, controls, special) => {
    // Charts with the same time axis share cursor and zoom.
    const group = chart.x.scale === "time" ? chart.id.replace(/^.*-/, "") : null;
    const { low, high, logarithmic } = chart.layout.x;
    const whole = [low, high];
    const options = {
      width: plot.clientWidth,
      height: chart.kind === "heat" ? 320 : 272,
      padding: [null, (u) => (isNamed(chart, u.width) ? END_ROOM : 20), null, null],
      legend: { show: false },
      focus: { alpha: 0.35 },
      cursor: {
        drag: { x: true, y: false, setScale: true },
        focus: { prox: 24 },
        dataIdx: (u, number, at) => (number === 0 ? at : nearest(u.data[number], at)),
        ...(group ? { sync: { key: group, setSeries: false } } : {}),
      },
      scales: {
        x: {
          time: false,
          ...(logarithmic ? { distr: 3, log: 2 } : {}),
          range: (u, min, max) => (min === null || (min === data[0][0] && max === data[0][data[0].length - 1]) ? whole : [min, max]),
        },
        y: special.y ?? yScale(chart),
      },
      axes: [xAxis(chart), yAxis(chart)],
      series: [{}, ...series],
      ...(special.bands ? { bands: special.bands } : {}),
      hooks: {
        drawClear: [drawMarks(chart)],
        draw: [...(special.paint ? [special.paint] : []), drawMarksOnTop(chart), nameEnds(chart)],
        setCursor: [(u) => controls.show(u, u.cursor.idx)],
        setScale: [follow(group), (u, key) => {
          if (key !== "x") return;
          const { min, max } = u.scales.x;
          controls.zoomed(min > whole[0] || max < whole[1] ? [min, max] : null);
        }],
      },
    };
    const made = new uPlot(options, data, plot);
    made.root.querySelectorAll(".u-over").forEach((over) => over.setAttribute("aria-hidden", "true"));
    if (group) {
      if (!groups.has(group)) groups.set(group, new Set());
      // A chart that is drawn later shows the same part as the others.
      const [other] = groups.get(group);
      groups.get(group).add(made);
      if (other) made.setScale("x", { min: other.scales.x.min, max: other.scales.x.max });
    }
    controls.keys(made, data[0], whole);
    return {
      resize: () => made.setSize({ width: plot.clientWidth, height: options.height }),
      reset: () => made.setScale("x", { min: whole[0], max: whole[1] }),
      zoom: (min, max) => made.setScale("x", { min: Math.max(min, whole[0]), max: Math.min(max, whole[1]) }),
      seen: () => [made.scales.x.min, made.scales.x.max],
      isShown: (number) => made.series[number + 1].show,
      remove: () => {
        if (group) groups.get(group).delete(made);
        made.destroy();
      },
      toggle: (number, show) => made.setSeries(number + 1, { show }),
    };
  };

  // ---- boxes, as SVG: an axis of uPlot has no room for their names

  const boxes = (chart, figureElement, plot, controls) => {
    const draw = () => {
      plot.replaceChildren();
      const width = plot.clientWidth;
      const narrow = width < 560;
      const measured = document.createElement("canvas").getContext("2d");
      measured.font = `12px ${getComputedStyle(plot).fontFamily}`;
      const longest = Math.max(...chart.boxes.map((box) => measured.measureText(box.name).width));
      const left = narrow ? 8 : Math.min(400, 28 + longest);
      const row = narrow ? 50 : 36;
      const height = chart.boxes.length * row + 44;
      const { low, high, ticks } = chart.layout.y;
      const place = (value) => left + ((value - low) / (high - low)) * (width - left - 24);
      const svg = node(plot, "svg", { class: "boxplot", width, height, viewBox: `0 0 ${width} ${height}` });
      for (const { at, text } of sideBySide(ticks, place)) {
        node(svg, "line", { class: "gridline", x1: place(at), x2: place(at), y1: 0, y2: height - 40 });
        node(svg, "text", { class: "tick", x: place(at), y: height - 24, "text-anchor": at === low ? "start" : "middle" }, text);
      }
      node(svg, "text", { class: "tick", x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, chart.y.label);
      chart.boxes.forEach((box, number) => {
        const middle = number * row + (narrow ? 32 : row / 2);
        const of = box.quartiles;
        const words = `${box.name}: median ${figure(box.median)}, ` +
          (box.interval ? `95% interval ${figure(box.interval[0])} to ${figure(box.interval[1])}, ` : "") +
          (of ? `middle half ${figure(of.lower)} to ${figure(of.upper)}, whiskers ${figure(of.low)} to ${figure(of.high)}, ` : "") +
          (of || box.points.length > 20 ? `${box.count} values` : `values ${box.points.map(figure).join(", ")}`);
        const group = node(svg, "g", { tabindex: 0, role: "img", "aria-label": words });
        const say = () => controls.say(words);
        group.addEventListener("focus", say);
        group.addEventListener("mouseenter", say);
        if (narrow) node(group, "text", { x: left, y: middle - 16 }, box.name);
        else node(group, "text", { x: left - 12, y: middle + 4, "text-anchor": "end" }, box.name);
        const color = `var(--s${box.group % 8})`;
        if (of) {
          node(group, "line", { x1: place(of.low), x2: place(of.high), y1: middle, y2: middle });
          for (const end of [of.low, of.high]) node(group, "line", { x1: place(end), x2: place(end), y1: middle - 6, y2: middle + 6 });
          const [from, to] = [place(of.lower), place(of.upper)];
          node(group, "rect", { x: from, width: Math.max(1, to - from), y: middle - 10, height: 20 }).style.fill = color;
        }
        if (box.interval) node(group, "line", { class: "interval", x1: place(box.interval[0]), x2: place(box.interval[1]), y1: middle, y2: middle });
        for (const value of box.points) {
          const dot = node(group, "circle", { class: of ? "" : "value", cx: place(value), cy: middle, r: of ? 2.5 : 4.5 });
          if (!of) dot.style.fill = color;
        }
        node(group, "line", { class: "median", x1: place(box.median), x2: place(box.median), y1: middle - 10, y2: middle + 10 });
      });
      plot.style.minHeight = "0";
    };
    draw();
    return { resize: draw, reset() {}, zoom() {}, seen: () => [0, 1], isShown: () => true, remove: () => plot.replaceChildren(), toggle() {} };
  };

  // ---- the table behind a chart

  const table = (chart) => {
    if (chart.kind === "boxes") {
      const head = ["", "values", "median", "interval from", "to", "low", "lower quartile", "upper quartile", "high"];
      const row = ({ name, count, median, interval, quartiles: of }) => [name, count, median, ...(interval ?? [null, null]), of?.low, of?.lower, of?.upper, of?.high];
      return [head, chart.boxes.map(row)];
    }
    if (chart.kind === "heat") {
      const rows = [];
      chart.columns.forEach(([from, to], column) =>
        chart.cells[column].forEach((value, row) => value > 0 && rows.push([from, to, chart.edges[row], chart.edges[row + 1], value])));
      return [["from s", "to s", "above ms", "up to ms", "transactions/s"], rows];
    }
    const data = joined(chart);
    const rows = data[0].map((x, i) => [chart.x.scale === "nines" ? percentile(x) : x, ...data.slice(1).map((values) => values[i] ?? null)]);
    const heads = [...chart.lines.map((line) => line.name), ...banded(chart).flatMap((line) => [`${line.name}, lowest`, `${line.name}, highest`])];
    return [[chart.x.scale === "time" ? "seconds" : chart.x.label, ...heads], rows.filter((row) => row.slice(1).some((value) => value !== null))];
  };
  const showTable = (chart, into) => {
    const [head, rows] = table(chart);
    const made = element("table");
    const headRow = made.createTHead().insertRow();
    for (const text of head) {
      const cell = element("th", "", text);
      cell.scope = "col";
      headRow.append(cell);
    }
    const body = made.createTBody();
    const wide = element("div", "wide");
    wide.tabIndex = 0;
    wide.append(made);
    const note = element("p", "soft");
    const more = button("", () => add());
    let shown = 0;
    const add = () => {
      const next = rows.slice(shown, shown + ROWS);
      for (const row of next) {
        const line = body.insertRow();
        row.forEach((value) => (line.insertCell().textContent = typeof value === "number" ? tick(value) : value ?? "–"));
      }
      shown += next.length;
      const left = rows.length - shown;
      note.hidden = rows.length <= ROWS;
      note.textContent = `${shown.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")} rows; the CSV file has all of them. `;
      if (left > 0) {
        more.textContent = `Show ${Math.min(left, ROWS)} more`;
        note.append(more);
      }
    };
    add();
    wide.addEventListener("scroll", () => {
      if (shown < rows.length && wide.scrollTop + wide.clientHeight > wide.scrollHeight - 100) add();
    });
    into.append(wide, note);
  };
  const csvCell = (value) => {
    if (typeof value !== "string") return value ?? "";
    const safe = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
    return /[",\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const download = (blob, name) => {
    const link = element("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    // The browser may read it after this.
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const save = (chart) => {
    const [head, rows] = table(chart);
    const text = [head, ...rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
    download(new Blob([text], { type: "text/csv" }), chart.file + ".csv");
  };

  // ---- a chart as a picture: what the page shows of it, with its title and subject

  const PICTURE = { width: 960, height: 460, left: 76, right: END_ROOM + 10, top: 66, bottom: 400 };
  const picture = (chart, made) => {
    const { width, height, left, right, top, bottom } = PICTURE;
    const svg = node(null, "svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "system-ui, sans-serif", "font-size": 12 });
    const text = (x, y, words, more) => node(svg, "text", { x, y, fill: style("--soft"), ...more }, words);
    node(svg, "rect", { width, height, fill: style("--paper") });
    text(left, 26, chart.title + (chart.caption ? ` (${chart.caption})` : ""), { "font-size": 17, fill: style("--ink") });
    text(left, 46, chart.subject);
    if (chart.kind === "boxes") {
      const plot = document.querySelector(`#chart-${CSS.escape(chart.id)} .boxplot`);
      const copy = plot.cloneNode(true);
      [copy, ...copy.querySelectorAll("*")].forEach((one, at) => {
        const from = getComputedStyle([plot, ...plot.querySelectorAll("*")][at]);
        for (const name of ["fill", "fill-opacity", "stroke", "stroke-width", "font-size"]) one.setAttribute(name, from.getPropertyValue(name));
      });
      const tall = plot.clientHeight + top;
      for (const [key, value] of Object.entries({ y: top, x: 0 })) copy.setAttribute(key, value);
      svg.setAttribute("height", tall);
      svg.setAttribute("width", Math.max(width, plot.clientWidth));
      svg.setAttribute("viewBox", `0 0 ${Math.max(width, plot.clientWidth)} ${tall}`);
      svg.firstChild.setAttribute("height", tall);
      svg.firstChild.setAttribute("width", Math.max(width, plot.clientWidth));
      svg.append(copy);
      return svg;
    }
    const [low, high] = made.seen();
    const along = (range, value) => (range.logarithmic ? Math.log(value) : value);
    const { x: xs, y: ys } = chart.layout;
    const x = (value) => left + ((along(xs, value) - along(xs, low)) / (along(xs, high) - along(xs, low))) * (width - left - right);
    const y = (value) => bottom - ((along(ys, value) - along(ys, ys.low)) / (along(ys, ys.high) - along(ys, ys.low))) * (bottom - top);
    const clip = node(node(svg, "defs", {}), "clipPath", { id: "plot" });
    node(clip, "rect", { x: left, y: top, width: width - left - right, height: bottom - top });
    const area = node(null, "g", { "clip-path": "url(#plot)" });
    const span = (mark, fill, from, tall) => node(area, "rect", { x: x(mark.from), y: from, width: Math.max(1.5, x(mark.to) - x(mark.from)), height: tall, fill });
    const of = (kind) => chart.marks.filter((mark) => mark.kind === kind);
    of("stage").filter((mark, number) => number % 2 === 0).forEach((mark) => span(mark, style("--stage"), top, bottom - top));
    for (const [kind, fill, edge] of [["steady", "--steady", "--good"], ["outage", "--outage", "--bad"]]) {
      for (const mark of of(kind)) {
        span(mark, style(fill), top, bottom - top);
        span(mark, style(edge), top, 3);
      }
    }
    for (const { at, text: words } of ys.ticks) {
      node(svg, "line", { x1: left, x2: width - right, y1: y(at), y2: y(at), stroke: style("--grid") });
      text(left - 8, y(at) + 4, words, { "text-anchor": "end" });
    }
    const time = chart.x.scale === "time";
    for (const { at, text: words } of sideBySide(ticksOf(xs, low, high, time), x)) {
      node(svg, "line", { x1: x(at), x2: x(at), y1: bottom, y2: bottom + 5, stroke: style("--soft") });
      text(x(at), bottom + 18, words, { "text-anchor": "middle" });
    }
    text((left + width - right) / 2, bottom + 38, chart.x.label, { "text-anchor": "middle" });
    text(16, (top + bottom) / 2, chart.y.label, { "text-anchor": "middle", transform: `rotate(-90 16 ${(top + bottom) / 2})` });
    svg.append(area);
    if (chart.kind === "heat") {
      const most = mostOf(chart);
      chart.columns.forEach(([from, to], column) => chart.cells[column].forEach((value, row) => {
        if (value === 0 || to < low || from > high) return;
        const [up, down] = [y(chart.edges[row + 1]), y(chart.edges[row])];
        node(area, "rect", { x: x(from), y: up, width: Math.max(1, x(to) - x(from)) + 0.3, height: down - up + 0.3, fill: heatColor(levelOf(value, most) / (LEVELS - 1)) });
      }));
    }
    const point = (at, value) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`;
    (chart.lines ?? []).forEach((line, number) => {
      if (!made.isShown(number)) return;
      const color = style("--s" + chart.layout.looks[number].color);
      const isSeen = (at) => at >= low && at <= high;
      if (line.dots) {
        line.x.forEach((at, i) => line.y[i] !== null && isSeen(at) && node(area, "circle", { cx: x(at).toFixed(1), cy: y(line.y[i]).toFixed(1), r: 2, fill: color, "fill-opacity": 0.4 }));
        return;
      }
      const runs = [[]];
      line.x.forEach((at, i) => (line.y[i] === null ? runs.push([]) : runs[runs.length - 1].push(i)));
      for (const run of runs.filter((run) => run.length > 0)) {
        if (line.band.length > 0) {
          const edge = (end) => run.filter((i) => line.band[i]).map((i) => point(line.x[i], line.band[i][end]));
          node(area, "polygon", { points: [...edge(0), ...edge(1).reverse()].join(" "), fill: color, "fill-opacity": line.stacked ? 0.6 : 0.2 });
        }
        node(area, "polyline", { points: run.map((i) => point(line.x[i], line.y[i])).join(" "), fill: "none", stroke: color, "stroke-width": 1.5, "stroke-dasharray": chart.layout.looks[number].dash.join(" ") || "none" });
      }
    });
    for (const mark of [...of("step"), ...of("change"), ...of("knee")]) {
      if (mark.from < low || mark.from > high) continue;
      const stroke = style(mark.kind === "change" ? "--bad" : "--soft");
      node(area, "line", { x1: x(mark.from), x2: x(mark.from), y1: top, y2: bottom, stroke, "stroke-dasharray": "4 2" });
      node(area, "text", { x: x(mark.from) + 3, y: top + 14, "font-size": 11, fill: style("--ink") }, mark.text);
    }
    of("errors").forEach((mark) => span(mark, style("--warn"), bottom - 6, 6));
    const ends = chart.kind === "lines" ? endsOf(chart, joined(chart), made.isShown, high) : [];
    const measured = document.createElement("canvas").getContext("2d");
    measured.font = "11px system-ui, sans-serif";
    ends.forEach((end) => (end.y = Math.min(bottom, Math.max(top, y(end.value)))));
    for (const { number, name, y: at } of apart(ends, 13, top + 4, bottom - 4)) {
      text(width - right + 6, at + 4, cut(measured, name, END_ROOM), { "font-size": 11, fill: style("--s" + chart.layout.looks[number].color) });
    }
    return svg;
  };
  const svgText = (chart, made) => new XMLSerializer().serializeToString(picture(chart, made));
  const saveSvg = (chart, made) => download(new Blob([svgText(chart, made)], { type: "image/svg+xml" }), chart.file + ".svg");
  // Twice as many pixels, as in the pictures of `assay report --png`.
  const pngOf = (chart, made) => new Promise((done, failed) => {
    const image = new Image();
    image.onload = () => {
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [2 * image.width, 2 * image.height];
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob(done, "image/png");
    };
    image.onerror = failed;
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svgText(chart, made));
  });
  const savePng = async (chart, made) => download(await pngOf(chart, made), chart.file + ".png");

  // ---- the address: #chart-latency-1, with a zoom #chart-latency-1&from=10&to=20

  // The chart that the reader used last: others follow it.
  let active = null;
  let linking = 0;
  const link = (figureElement, range) => {
    if (figureElement !== active) return;
    clearTimeout(linking);
    const at = (seconds) => Number(seconds.toFixed(3));
    const address = `#${figureElement.id}` + (range ? `&from=${at(range[0])}&to=${at(range[1])}` : "");
    // Browsers limit how often an address changes.
    linking = setTimeout(() => history.replaceState(null, "", address), 200);
  };
  const restore = () => {
    const [id, ...rest] = decodeURIComponent(location.hash.slice(1)).split("&");
    const target = document.getElementById(id);
    if (!target) return;
    for (let one = target.closest("details"); one; one = one.parentElement.closest("details")) one.open = true;
    const { from, to } = Object.fromEntries(rest.map((part) => part.split("=")));
    if (from !== undefined && target.dataset.chart) {
      if (!drawn.has(target)) draw(target);
      drawn.get(target)?.zoom(Number(from), Number(to));
    }
    if (rest.length > 0) target.scrollIntoView();
  };

  // ---- one chart on the page

  const draw = (figureElement) => {
    const chart = charts.get(figureElement.dataset.chart);
    const plot = figureElement.querySelector(".plot");
    if (!chart || plot.clientWidth === 0) return;
    const legend = element("div", "legend");
    const readout = element("p", "readout");
    // The values at the cursor; read aloud by screen readers if the cursor is moved by keys.
    const heard = element("p", "heard");
    heard.setAttribute("aria-live", "polite");
    let byKey = false;
    const reset = button("Whole range", () => made.reset());
    reset.hidden = true;
    const outputs = [];
    const controls = {
      say: (text) => (readout.textContent = text),
      hear: (text) => {
        if (byKey) heard.textContent = text;
        byKey = false;
      },
      zoomed: (range) => {
        reset.hidden = !range;
        link(figureElement, range);
      },
      show: (u, at) => {
        const x = at === null || at === undefined ? null : u.data[0][at];
        outputs.forEach((output, number) => {
          const index = u.cursor.idxs?.[number + 1];
          output.textContent = x === null || index === null || index === undefined ? "" : figure(own(chart, u.data, number, index));
        });
        if (x === null) return controls.say("");
        const marks = chart.marks.filter((mark) => mark.from <= x && x <= mark.to).map((mark) => mark.text);
        const heat = chart.kind === "heat" ? [hottest(chart, x)] : [];
        controls.say([across(chart, x), ...marks, ...heat].join(" · "));
        const values = (chart.lines ?? []).map((line, number) => `${line.name} ${outputs[number].textContent}`);
        controls.hear([across(chart, x), ...values.filter((value) => !value.endsWith(" ")), ...marks, ...heat].join(", "));
      },
      keys: (u, xs, whole) => {
        let at = null;
        plot.onkeydown = (event) => {
          if (event.ctrlKey || event.altKey || event.metaKey) return;
          const step = event.shiftKey ? 10 : 1;
          const { min, max } = u.scales.x;
          const first = xs.findIndex((x) => x >= min);
          let last = xs.length - 1;
          while (last > first && xs[last] > max) last--;
          const zoom = (factor) => {
            const center = at === null ? (min + max) / 2 : xs[at];
            const [from, to] = [center - (center - min) * factor, center + (max - center) * factor];
            if (to > from && xs.filter((x) => x >= from && x <= to).length > 1) {
              u.setScale("x", { min: Math.max(from, whole[0]), max: Math.min(to, whole[1]) });
            }
          };
          switch (event.key) {
            case "ArrowRight": at = at === null ? first : Math.min(last, at + step); break;
            case "ArrowLeft": at = at === null ? last : Math.max(first, at - step); break;
            case "Home": at = first; break;
            case "End": at = last; break;
            case "+": case "=": zoom(0.5); break;
            case "-": zoom(2); break;
            case "0": case "Escape": u.setScale("x", { min: whole[0], max: whole[1] }); break;
            default: return;
          }
          event.preventDefault();
          byKey = true;
          if (at !== null) u.setCursor({ left: u.valToPos(xs[at], "x"), top: u.over.clientHeight / 2 });
        };
      },
    };
    plot.replaceChildren();
    figureElement.querySelectorAll(".legend, .readout, .heard, .tools").forEach((old) => old.remove());
    const made = { lines, heat, boxes }[chart.kind](chart, figureElement, plot, controls);
    drawn.set(figureElement, made);
    if (chart.kind === "lines") {
      chart.lines.forEach((line, number) => {
        const entry = button("", () => {
          const show = entry.getAttribute("aria-pressed") === "false";
          entry.setAttribute("aria-pressed", show);
          made.toggle(number, show);
        });
        entry.setAttribute("aria-pressed", "true");
        const swatch = document.createElementNS(SVG, "svg");
        const { color, dash } = chart.layout.looks[number];
        const attributes = line.dots
          ? { cx: "50%", cy: "60%", r: 3 }
          : { x1: 0, x2: "100%", y1: "60%", y2: "60%", "stroke-width": 3, "stroke-dasharray": dash.join(" ") };
        const shape = document.createElementNS(SVG, line.dots ? "circle" : "line");
        for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value);
        shape.style[line.dots ? "fill" : "stroke"] = `var(--s${color})`;
        swatch.append(shape);
        const output = element("span", "value");
        outputs.push(output);
        entry.append(swatch, line.name, output);
        legend.append(entry);
      });
    }
    if (chart.kind === "heat") legend.append(scale(chart));
    for (const [kind, words] of [["steady", "steady"], ["outage", "outage"], ["errors", "errors"]]) {
      if (chart.marks.some((mark) => mark.kind === kind)) legend.append(element("span", `mark ${kind}`, words));
    }
    if (legend.children.length > 0) plot.after(legend);
    const tools = element("div", "tools");
    tools.append(reset, "Save as:", button("CSV", () => save(chart)), button("SVG", () => saveSvg(chart, made)), button("PNG", () => savePng(chart, made)));
    figureElement.querySelector(".behind").before(readout, heard);
    figureElement.querySelector(".behind").after(tools);
    figureElement.dataset.drawn = "yes";
  };
  // The colors of a heat map with the values that they stand for.
  const scale = (chart) => {
    const most = mostOf(chart);
    const bar = node(null, "svg", { viewBox: `0 0 ${LEVELS} 1`, preserveAspectRatio: "none", "aria-hidden": "true" });
    for (let level = 0; level < LEVELS; level++) node(bar, "rect", { x: level, y: 0, width: 1.05, height: 1, fill: heatColor(level / (LEVELS - 1)) });
    const made = element("span", "scale");
    made.append(figure(most / 1000), bar, `${figure(most)} transactions/s (log scale)`);
    return made;
  };
  const hottest = (chart, x) => {
    const column = chart.columns.findIndex(([from, to]) => from <= x && x <= to);
    if (column < 0) return "";
    const cells = chart.cells[column];
    if (!cells.some((value) => value > 0)) return "no transactions";
    const row = cells.indexOf(Math.max(...cells));
    return `most took ${figure(chart.edges[row])} to ${figure(chart.edges[row + 1])} ms`;
  };

  // ---- any two lines: over time, or one over the other

  const explore = () => {
    const into = document.querySelector(".explore");
    if (!into) return;
    const several = document.querySelectorAll(".record").length > 1;
    const sources = [];
    for (const chart of charts.values()) {
      const record = chart.id.replace(/^.*-/, "");
      if (chart.kind !== "lines" || chart.x.scale !== "time" || record === "all") continue;
      const of = several ? document.querySelector(`#record-${record} summary`).textContent + ": " : "";
      for (const line of chart.lines) {
        const y = line.y.map((value, at) => (value !== null && line.stacked ? value - line.band[at][0] : value));
        const name = line.name === chart.title ? chart.title : `${chart.title}: ${line.name}`;
        sources.push({ name: of + name, unit: chart.y.label, x: line.x, y });
      }
    }
    if (sources.length < 2) return;
    const choice = (label, options, chosen) => {
      const outer = element("label", "", label + " ");
      const select = element("select");
      options.forEach((text, at) => select.append(new Option(text, at, false, at === chosen)));
      select.addEventListener("change", show);
      outer.append(select);
      into.append(outer);
      return select;
    };
    const plot = element("div", "plot");
    let made = null;
    const show = () => {
      if (made) made.destroy();
      const [a, b] = [sources[first.value], sources[second.value]];
      const sides = { width: plot.clientWidth, height: 320, cursor: { drag: { x: true, y: false } } };
      const axisOf = (label, more) => ({ ...axis({ label }, {}), filter: undefined, size: 60, ...more });
      const shown = (u, value) => (value === null || value === undefined ? "–" : figure(value));
      if (how.value === "0") {
        const scale = a.unit === b.unit ? "y" : "b";
        const line = (of, number, scale) => ({ label: of.name, scale, stroke: style("--s" + number), width: 1.5, value: shown, spanGaps: true });
        made = new uPlot({
          ...sides,
          scales: { x: { time: false } },
          axes: [
            axisOf("time", { size: 34, values: (u, at) => at.map(clock) }),
            axisOf(a.unit),
            ...(scale === "b" ? [axisOf(b.unit, { scale: "b", side: 1, grid: { show: false } })] : []),
          ],
          series: [{ label: "time", value: (u, x) => (x === null ? "–" : clock(x)) }, line(a, 0, "y"), line(b, 1, scale)],
        }, uPlot.join([[a.x, a.y], [b.x, b.y]]), plot);
        return;
      }
      // Each value of the first with the value of the second that is nearest in time, at most a second away.
      const pairs = [];
      let at = 0;
      a.x.forEach((x, number) => {
        while (at + 1 < b.x.length && Math.abs(b.x[at + 1] - x) <= Math.abs(b.x[at] - x)) at++;
        const isKnown = a.y[number] !== null && b.y[at] !== null && b.y[at] !== undefined;
        if (isKnown && Math.abs(b.x[at] - x) <= 1) pairs.push([b.y[at], a.y[number]]);
      });
      pairs.sort(([one], [other]) => one - other);
      made = new uPlot({
        ...sides,
        scales: { x: { time: false } },
        axes: [axisOf(`${b.name}, ${b.unit}`, { size: 34 }), axisOf(a.unit)],
        series: [{ label: b.name, value: shown }, { label: a.name, value: shown, paths: () => null, stroke: style("--s0"), points: { show: true, size: 6, width: 0, fill: style("--s0") + "88" } }],
      }, [pairs.map(([x]) => x), pairs.map(([, y]) => y)], plot);
    };
    const names = sources.map((source) => source.name);
    const first = choice("Show", names, 0);
    const slow = sources.findIndex((source) => source.name.endsWith(": p99"));
    const second = choice("with", names, slow > 0 ? slow : 1);
    const how = choice("as", ["lines over time", "the first over the second"], 0);
    into.append(plot);
    const drawn = new IntersectionObserver(([entry]) => entry.isIntersecting && !made && show(), { rootMargin: "200px" });
    drawn.observe(plot);
    new ResizeObserver(() => made && plot.clientWidth > 0 && made.setSize({ width: plot.clientWidth, height: 320 })).observe(plot);
  };

  // ---- the page

  const figures = [...document.querySelectorAll("figure[data-chart]")];
  for (const figureElement of figures) {
    const behind = figureElement.querySelector(".behind");
    behind.addEventListener("toggle", () => {
      if (behind.open && !behind.querySelector("table")) showTable(charts.get(figureElement.dataset.chart), behind);
    });
    figureElement.querySelector(".plot").tabIndex = 0;
    for (const kind of ["pointerdown", "keydown"]) figureElement.addEventListener(kind, () => (active = figureElement), true);
  }
  // Charts near the screen are drawn first, then all others one by one, so that a printed or saved page is complete.
  // Those in a closed record wait until it is opened: ten records have forty of them.
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting && !drawn.has(entry.target)) draw(entry.target);
    }
  }, { rootMargin: "600px" });
  figures.forEach((figureElement) => watcher.observe(figureElement));
  const drawNext = (number) => {
    if (number === figures.length) return;
    if (!drawn.has(figures[number]) && figures[number].checkVisibility()) draw(figures[number]);
    setTimeout(drawNext, 0, number + 1);
  };
  setTimeout(drawNext, 0, 0);
  explore();
  addEventListener("hashchange", restore);
  setTimeout(restore, 0);
  const widths = new WeakMap();
  const sizes = new ResizeObserver((entries) => {
    for (const { target } of entries) {
      const made = drawn.get(target.closest("figure"));
      if (made && target.clientWidth > 0 && widths.get(target) !== target.clientWidth) {
        widths.set(target, target.clientWidth);
        made.resize();
      }
    }
  });
  figures.forEach((figureElement) => sizes.observe(figureElement.querySelector(".plot")));

  const redraw = () => {
    for (const [figureElement, made] of drawn) {
      made.remove();
      draw(figureElement);
    }
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is light: what was drawn for a dark screen is drawn again. Records that were opened by the reader are printed;
  // all of an experiment would be hundreds of charts.
  const OPENED_MAX = 4;
  const paper = (is) => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.classList.toggle("light", is);
    const records = document.querySelectorAll(".record > details");
    if (is) {
      document.querySelectorAll("details.warning, details.printed").forEach((details) => (details.open = true));
      if (records.length <= OPENED_MAX) records.forEach((details) => (details.open = true));
    }
    if (dark) redraw();
    if (is) figures.filter((figureElement) => !drawn.has(figureElement) && figureElement.checkVisibility()).forEach(draw);
  };
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
})();
