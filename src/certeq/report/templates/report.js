"use strict";
// The page's own planner and its tables. It reads what the page holds and asks nobody for anything.
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const make = (name, attributes = {}, text = null) => {
    const svg = ["svg", "rect", "text", "g", "title", "path"].includes(name);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== null) node.textContent = text;
    return node;
  };
  const several = (n, thing) => `${n.toLocaleString("en-US")} ${thing}${n === 1 ? "" : "s"}`;
  const times = (n) => (n === 1 ? "once" : several(n, "time"));
  const short = (x) => {
    if (!Number.isFinite(x)) return "infinitely many";
    if (x >= 1000) return Math.round(x).toLocaleString("en-US");
    return x === 0 ? "0" : String(Number(x.toPrecision(x >= 100 ? 3 : 2)));
  };

  // ---- planning: T = (1 - w) T_data + w T_target, as in certeq.learning.equivalence and certeq.planners ----

  const TIE = 1e-10, ROUNDING = 1e-13; // decision 0003

  function fillRows(rows, lines, S) { // flat rows and sparse rows, written out
    const out = new Float64Array(lines * S);
    for (let line = 0; line < lines; line++) {
      if (rows.flat[line]) out.fill(rows.flat[line], line * S, (line + 1) * S);
      for (let k = rows.begin[line]; k < rows.begin[line + 1]; k++) out[line * S + rows.next[k]] = rows.share[k];
    }
    return out;
  }

  function readData(m) { // frequencies, with the convention's rows for pairs without enough data
    const S = m.states, lines = S * m.actions, data = new Float64Array(lines * S);
    for (let line = 0; line < lines; line++)
      for (let k = m.counts.begin[line]; k < m.counts.begin[line + 1]; k++)
        data[line * S + m.counts.next[k]] = m.counts.count[k] * (1 / m.visits[line]);
    const thin = fillRows(m.thinRows, m.thin.length, S);
    m.thin.forEach((line, i) => data.set(thin.subarray(i * S, (i + 1) * S), line * S));
    return data;
  }

  function readTarget(m) { // one row for each pair
    if (!m.target) return null;
    const { s, a, rows } = m.target, S = m.states, A = m.actions, given = fillRows(rows, s * a, S);
    const out = new Float64Array(S * A * S);
    for (let i = 0; i < S; i++)
      for (let j = 0; j < A; j++) {
        const line = (s > 1 ? i : 0) * a + (a > 1 ? j : 0);
        out.set(given.subarray(line * S, (line + 1) * S), (i * A + j) * S);
      }
    return out;
  }

  function mix(data, weight, target, S) {
    const out = new Float64Array(data.length);
    for (let line = 0; line < weight.length; line++)
      for (let n = 0, at = line * S; n < S; n++, at++)
        out[at] = (1 - weight[line]) * data[at] + weight[line] * target(at, line, n);
    return out;
  }

  function rewards(m, rows) { // what pairs earn, where rewards by next state, or by going on and ending, follow the rows
    const { states: S, actions: A } = m, out = m.table ? Float64Array.from(m.table) : new Float64Array(S * A);
    if (!m.table)
      for (let line = 0; line < S * A; line++) {
        let sum = 0, mass = 0;
        for (let n = 0; n < S; n++) {
          sum += rows[line * S + n] * (m.arrival ? m.arrival[n] : m.going[line]);
          mass += rows[line * S + n];
        }
        out[line] = sum + (1 - mass) * (m.arrival ? m.arrival[S] : m.ending[line]);
      }
    for (let s = 0; s < S; s++)
      if (m.stranded[s]) {
        let mean = 0;
        for (let a = 0; a < A; a++) mean += out[s * A + a] / A;
        out.fill(mean, s * A, (s + 1) * A);
      }
    return out;
  }

  function backup(p, values) {
    const q = new Float64Array(p.S * p.A);
    for (let line = 0; line < q.length; line++) {
      let next = 0;
      for (let n = 0, at = line * p.S; n < p.S; n++, at++) next += p.rows[at] * values[n];
      q[line] = p.allowed[line] ? p.reward[line] + p.discount * next : -Infinity;
    }
    return q;
  }

  function bestOf(p, q, s) {
    let best = -Infinity;
    for (let a = 0; a < p.A; a++) best = Math.max(best, q[s * p.A + a]);
    return best;
  }

  function near(p, q, share) { // how close to the best of its state an action must come
    let high = -Infinity, low = Infinity;
    for (const x of q) { if (x > high) high = x; if (x !== -Infinity && x < low) low = x; }
    return share * (high - low) + ROUNDING * Math.max(Math.abs(high), Math.abs(low));
  }

  function greedy(p, q) { // of the tied best actions the one tried most often in its state, and then anywhere
    const margin = near(p, q, TIE), policy = new Int32Array(p.S), anywhere = new Float64Array(p.A);
    p.visits.forEach((c, line) => { anywhere[line % p.A] += c; });
    for (let s = 0; s < p.S; s++) {
      const best = bestOf(p, q, s), here = p.visits.slice(s * p.A, (s + 1) * p.A);
      let chosen = -1;
      for (let a = 0; a < p.A; a++) {
        if (!(q[s * p.A + a] >= best - margin)) continue;
        const ahead = chosen < 0 || here[a] > here[chosen];
        if (ahead || (here[a] === here[chosen] && anywhere[a] > anywhere[chosen])) chosen = a;
      }
      policy[s] = Math.max(chosen, 0);
    }
    return policy;
  }

  function improve(p, q, policy) { // leave an action only for one that is better by more than rounding
    const margin = near(p, q, 0), out = new Int32Array(p.S);
    for (let s = 0; s < p.S; s++) {
      const best = bestOf(p, q, s);
      out[s] = policy[s];
      if (q[s * p.A + policy[s]] >= best - margin) continue;
      let a = 0;
      while (a < p.A - 1 && q[s * p.A + a] !== best) a++;
      out[s] = a;
    }
    return out;
  }

  function valueOf(p, policy) { // (I - discount T) v = r, by elimination with pivots
    const S = p.S, W = S + 1, m = new Float64Array(S * W);
    for (let s = 0; s < S; s++) {
      const line = s * p.A + policy[s];
      for (let n = 0; n < S; n++) m[s * W + n] = (s === n ? 1 : 0) - p.discount * p.rows[line * S + n];
      m[s * W + S] = p.reward[line];
    }
    for (let k = 0; k < S; k++) {
      let top = k;
      for (let i = k + 1; i < S; i++) if (Math.abs(m[i * W + k]) > Math.abs(m[top * W + k])) top = i;
      if (top !== k) for (let j = k; j < W; j++) { const x = m[k * W + j]; m[k * W + j] = m[top * W + j]; m[top * W + j] = x; }
      for (let i = k + 1; i < S; i++) {
        const factor = m[i * W + k] / m[k * W + k];
        if (factor !== 0) for (let j = k; j < W; j++) m[i * W + j] -= factor * m[k * W + j];
      }
    }
    const values = new Float64Array(S);
    for (let k = S - 1; k >= 0; k--) {
      let sum = m[k * W + S];
      for (let j = k + 1; j < S; j++) sum -= m[k * W + j] * values[j];
      values[k] = sum / m[k * W + k];
    }
    return values;
  }

  function ends(p) { // with discount 1: whether every policy is sure to end
    let trapped = new Float64Array(p.S).fill(1), left = p.S;
    for (;;) {
      const stays = new Float64Array(p.S);
      for (let line = 0; line < p.S * p.A; line++) {
        const s = Math.floor(line / p.A);
        let mass = 0;
        for (let n = 0; n < p.S; n++) mass += p.rows[line * p.S + n] * trapped[n];
        if (trapped[s] && p.allowed[line] && mass >= 1 - 1e-9) stays[s] = 1;
      }
      const remaining = stays.reduce((sum, x) => sum + x, 0);
      if (remaining === left) return left === 0;
      trapped = stays;
      left = remaining;
    }
  }

  function plan(p, horizon) {
    if (horizon) {
      let values = new Float64Array(p.S), q = null;
      for (let t = 0; t < horizon; t++) {
        q = backup(p, values);
        values = Float64Array.from({ length: p.S }, (_, s) => bestOf(p, q, s));
      }
      return greedy(p, q);
    }
    let q = backup(p, new Float64Array(p.S)), policy = greedy(p, q);
    for (let round = 0; round < 1000; round++) {
      q = backup(p, valueOf(p, policy));
      const better = improve(p, q, policy);
      if (better.every((a, s) => a === policy[s])) break;
      policy = better;
    }
    return greedy(p, q);
  }

  function planner(m) {
    const S = m.states, A = m.actions, data = readData(m), thin = new Set(m.thin);
    const mean = m.visits.reduce((sum, c) => sum + c, 0) / (S * A);
    const solve = (rows, reward, discount) => {
      const problem = { S, A, rows, reward, discount, allowed: m.allowed, visits: m.visits };
      if (discount === 1 && !m.horizon && !ends(problem)) return new Array(S).fill(-1); // there are no values
      return Array.from(plan(problem, m.horizon), (a, s) => (m.stranded[s] ? -1 : a));
    };
    const lowered = rewards(m, data);
    return {
      discounted: (planning) => solve(data, lowered, planning),
      even: (planning) => { // the same number of invented transitions in all, as many for each pair
        const weight = (m.discount - planning) / m.discount;
        const amount = weight >= 1 ? Infinity : (mean * weight) / (1 - weight);
        const each = m.visits.map((c, line) => (thin.has(line) ? m.weightAtThin : c === 0 ? 1 : 1 / (1 + c / amount)));
        const rows = mix(data, each, () => 1 / m.outcomes, S);
        return solve(rows, rewards(m, rows), m.discount);
      },
      chosen: () => { // as it was learned
        const target = readTarget(m);
        return target && solve(mix(data, m.weight, (at) => target[at], S), Float64Array.from(m.reward), m.discount);
      },
    };
  }

  // ---- the slider ----

  const SHADES = ["#ffffd9", "#eff9bd", "#d5eeb3", "#a9ddb7", "#73c9bd", "#45b4c2", "#2897bf", "#2073b2", "#234ea0", "#1c3185", "#081d58"];

  function sheetOf(m, place, title) { // all states as small boxes, where they lie in the other pictures
    const { rows, columns, row, column } = m.sheet, cell = 10;
    const svg = make("svg", { viewBox: `0 0 ${columns * cell} ${rows * cell}`, role: "img" });
    const boxes = Array.from({ length: m.states }, (_, s) => {
      const at = { x: column[s] * cell + 0.4, y: row[s] * cell + 0.4, width: cell - 0.8, height: cell - 0.8, rx: 1 };
      const box = make("rect", at);
      box.append(make("title"));
      svg.append(box);
      return box;
    });
    const panel = make("div", { class: "panel" });
    panel.append(make("h4", {}, title), svg);
    place.append(panel);
    return { svg, boxes };
  }

  function slider(m, labels) {
    const root = $("#slider"), range = $("input", root), S = m.states, A = m.actions;
    const found = planner(m), steps = m.steps, maps = $("#maps");
    const advice = sheetOf(m, maps, "Advice at this discount");
    const prior = labels.actions.map((name) => sheetOf(m, maps, `Invented for “${name}”`));
    const most = Math.max(...m.visits), least = Math.min(...m.visits.filter((c) => c > 0));
    const top = Math.log(most * 99), bottom = Math.log(least / 99);
    const name = (a) => (a < 0 ? "no advice" : labels.actions[a]);

    function show() {
      const step = Number(range.value), planning = (m.discount * step) / steps;
      const weight = (m.discount - planning) / m.discount, factor = (m.discount - planning) / planning;
      $("#planning").textContent = planning.toFixed(3);
      range.setAttribute("aria-valuetext", planning.toFixed(3));
      for (let a = 0; a < A; a++)
        for (let s = 0; s < S; s++) {
          const c = m.visits[s * A + a], invented = c > 0 ? (planning > 0 ? c * factor : Infinity) : 0;
          const box = prior[a].boxes[s];
          const share = invented > 0 ? (Math.min(Math.log(invented), top) - bottom) / (top - bottom) : 0;
          box.setAttribute("fill", invented > 0 ? SHADES[Math.max(0, Math.min(10, Math.floor(share * 11)))] : "none");
          box.setAttribute("class", c > 0 ? "" : "never");
          box.firstChild.textContent = `${labels.states[s]}: ${labels.actions[a]}, tried ${times(c)}, ${short(invented)} invented`;
        }
      const lower = found.discounted(planning), even = found.even(planning);
      let moved = 0, uneven = 0;
      const changed = [];
      for (let s = 0; s < S; s++) {
        const box = advice.boxes[s];
        box.setAttribute("fill", lower[s] < 0 ? "none" : m.colors[lower[s]]);
        box.setAttribute("data-advice", lower[s]);
        box.setAttribute("data-even", even[s]);
        box.setAttribute("class", lower[s] !== m.advice[s] ? "moved" : "");
        box.firstChild.textContent = `${labels.states[s]}: ${name(lower[s])}` + (lower[s] !== m.advice[s] ? `, in this report ${name(m.advice[s])}` : "");
        if (lower[s] !== m.advice[s]) { moved++; changed.push(s); }
        if (lower[s] !== even[s]) uneven++;
      }
      prior.forEach(({ svg }, a) => svg.setAttribute("aria-label",
        `Invented transitions of each state for ${labels.actions[a]} at planning discount ${planning.toFixed(3)}`));
      advice.svg.setAttribute("aria-label", `Advice of each state at planning discount ${planning.toFixed(3)}`);
      const facts = [];
      if (step === steps) facts.push("At this setting nothing is invented: the data speak alone.");
      else if (step === 0) facts.push("At 0 the future is ignored: no number of invented transitions is that strong.");
      else facts.push(
        `Your best-observed pair (tried ${times(most)}) is treated as if ${short(most * factor)} uniform transitions had been added to it, ` +
        `your least observed (tried ${times(least)}) as if ${short(least * factor)}.`);
      facts.push(`Every row is pulled toward ending by the same weight, ${weight.toFixed(3)}.`);
      facts.push(`The advice differs from this report's in ${moved} of ${several(S, "state")}, and in ${uneven} from the same amount spread evenly over all pairs.`);
      $("#facts").replaceChildren(...facts.map((text) => make("li", {}, text)));
      const body = changed.slice(0, 100).map((s) => {
        const line = make("tr");
        line.append(make("th", { scope: "row" }, labels.states[s]), ...[m.advice[s], lower[s], even[s]].map((a) => make("td", {}, name(a))));
        return line;
      });
      $("#changed tbody").replaceChildren(...body);
      $("#changed caption").textContent = changed.length > 100 ? `The first 100 of ${several(changed.length, "state")}` : several(changed.length, "state");
      root.dataset.step = step;
    }
    let waiting = 0;
    range.addEventListener("input", () => { cancelAnimationFrame(waiting); waiting = requestAnimationFrame(show); });
    root.classList.remove("hide");
    const again = found.chosen();
    root.dataset.agrees = again === null ? "unknown" : String(again.every((a, s) => a === m.advice[s]));
    show();
  }

  // ---- tables: search, filter, sort, save ----

  function value(cell) {
    const given = cell.dataset.value ?? cell.textContent.trim();
    const number = Number(given.replaceAll(",", "").replace("−", "-"));
    return given !== "" && Number.isFinite(number) ? number : given;
  }

  function sortable(table) {
    const heads = all("thead th", table);
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = $("tbody", table), sign = down ? -1 : 1;
        const order = [...body.rows].map((row) => [value(row.cells[column]), row]);
        order.sort(([x], [y]) => {
          if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1; // what has no number comes last
          return sign * (typeof x === "number" ? x - y : x.localeCompare(y));
        });
        body.append(...order.map(([, row]) => row));
      });
    });
    for (const row of $("tbody", table).rows)
      [...row.cells].forEach((cell, column) => { cell.dataset.label = heads[column].textContent; });
  }

  function filters(tools) {
    const table = document.getElementById(tools.dataset.table), rows = [...$("tbody", table).rows];
    const text = $("input[type=search]", tools), advised = $("select", tools), ticks = all("input[type=checkbox]", tools);
    const words = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    const apply = () => {
      const wanted = text.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const row of rows) {
        const fits = wanted.every((word) => words.get(row).includes(word)) &&
          (!advised.value || row.dataset.action === advised.value) &&
          ticks.every((tick) => !tick.checked || row.classList.contains(tick.value));
        row.classList.toggle("hide", !fits);
        shown += fits;
      }
      $("output", tools).textContent = `${shown.toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")} shown`;
    };
    for (const control of [text, advised, ...ticks]) control.addEventListener("input", apply);
    tools.classList.remove("hide");
    apply();
  }

  async function unpacked(text) { // see `overview.elsewhere`
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    const all = await new Response(stream).arrayBuffer(), end = new Uint8Array(all).indexOf(10);
    const given = JSON.parse(new TextDecoder().decode(all.slice(0, end)));
    const size = (all.byteLength - end - 1) / given.bytes.reduce((sum, n) => sum + n, 0);
    let at = end + 1;
    const columns = given.bytes.map((n) => {
      const part = all.slice(at, (at += n * size));
      return n === 1 ? new Uint8Array(part) : n === 2 ? new Uint16Array(part) : new Uint32Array(part);
    });
    const tried = columns.pop(), advice = columns.pop();
    return { ...given, size, columns, advice, tried };
  }

  function searching(text, tools) { // all states, where the table has only those visited most
    const place = $("#elsewhere"), box = $("input[type=search]", tools);
    let given = null, last = 0;
    const name = (s) => given.columns.map((codes, axis) => `${given.axes[axis]} ${given.words[axis][codes[s]]}`.trim()).join(", ");
    const often = (n) => (n === 0 ? "–" : n === 1 ? `<${given.limit}` : (n - 2).toLocaleString("en-US"));
    const found = (wanted) => { // a state fits if each word is in one of its parts or in its advice
      const parts = [...given.columns, given.advice];
      const fits = wanted.map((word) => [...given.words, given.told].map((texts) => Uint8Array.from(texts, (one) => one.toLowerCase().includes(word))));
      const states = [];
      for (let s = 0; s < given.size; s++)
        if (fits.every((own) => own.some((flags, axis) => flags[parts[axis][s]]))) states.push(s);
      return states;
    };
    const look = async () => {
      const wanted = box.value.toLowerCase().split(/[\s,]+/).filter(Boolean), turn = ++last, told = $("p", place);
      place.classList.toggle("hide", !wanted.length);
      if (!wanted.length) return;
      if (!given) {
        told.textContent = "Looking through all states …";
        try {
          given = await unpacked(text);
        } catch {
          told.textContent = "This browser cannot unpack the other states. Open the page in a newer one, or look them up with certeq apply.";
          return;
        }
        if (turn !== last) return;
      }
      const states = found(wanted);
      told.textContent = `${several(states.length, "state")} of ${given.size.toLocaleString("en-US")} found${states.length > 100 ? "; the first 100" : ""}${states.length ? ":" : "."}`;
      $("tbody", place).replaceChildren(...states.slice(0, 100).map((s) => {
        const line = make("tr");
        line.append(make("th", { scope: "row" }, name(s)), make("td", {}, given.told[given.advice[s]]), make("td", { class: "n" }, often(given.tried[s])));
        return line;
      }));
    };
    box.addEventListener("input", look);
  }

  function save(name, type, content) {
    const link = make("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
    link.click();
    URL.revokeObjectURL(link.href);
  }

  function csv(table) {
    const cell = (text) => {
      const safe = /^[=+\-@\t\r]/.test(text) && !Number.isFinite(Number(text)) ? "'" + text : text;
      return /[",\n\r]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
    };
    const rows = [...table.rows].map((row) => [...row.cells].map((one) => cell(one.textContent.trim().replace("−", "-"))).join(","));
    return rows.join("\n") + "\n";
  }

  function saving() {
    for (const box of all(".scroll")) {
      const table = $("table", box), button = make("button", { type: "button", class: "save" }, "Save as CSV");
      button.addEventListener("click", () => save(`${table.id || "table"}.csv`, "text/csv", csv(table)));
      box.after(button);
    }
  }

  // ---- folds ----

  function folds() {
    const button = $("#unfold"), every = all(".fold");
    const reveal = () => {
      const fold = every.find((one) => `#${one.parentElement.id}` === location.hash);
      if (fold) fold.open = true;
    };
    button.addEventListener("click", () => {
      const on = every.some((fold) => !fold.open);
      every.forEach((fold) => { fold.open = on; });
      button.textContent = on ? "Close all" : "Open all";
    });
    button.classList.remove("hide");
    let shut = [];
    addEventListener("beforeprint", () => { shut = every.filter((fold) => !fold.open); shut.forEach((fold) => { fold.open = true; }); });
    addEventListener("afterprint", () => shut.forEach((fold) => { fold.open = false; }));
    addEventListener("hashchange", reveal);
    all("a[href^='#']").forEach((link) => link.addEventListener("click", () => setTimeout(reveal)));
    reveal();
  }

  folds();
  all("table.sortable").forEach(sortable);
  all(".tools").forEach(filters);
  const states = $("#states");
  if (states) searching(states.textContent, $(".tools"));
  saving();
  const embedded = $("#model");
  if (embedded) {
    const { model, labels } = JSON.parse(embedded.textContent);
    slider(model, labels);
  }
})();
