// Asks the member for its figures every two seconds while somebody looks, and works out rates.

const SAMPLES_MAX = 450;

export const store = {
  /** The newest answer; null before the first. */
  status: null,
  /** Samples of the last quarter of an hour, in order. */
  samples: [],
  /** Rates by the map's name: reads, writes and removals per second. */
  rates: new Map(),
  /** How often each kind of operation and statement is done, per second, by "operation get" and the like. */
  kinds: new Map(),
  /** Rates of the past by the map's name, as far as this page saw them. */
  past: new Map(),
  /** Why there is no answer. */
  error: null,
};

const listeners = new Set();
let previous = null;
let timer = 0;
let asking = false;

/** Calls `listener` after each answer; returns how to stop. */
export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function start() {
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) ask();
  });
  ask();
}

async function ask() {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  try {
    const since = store.samples.at(-1)?.at_ms ?? 0;
    const answer = await fetch(`/_filbert/status?since=${since}`, { cache: "no-store", signal: AbortSignal.timeout(10_000) });
    if (!answer.ok) throw new Error(`the member answered ${answer.status}`);
    take(await answer.json());
    store.error = null;
  } catch (error) {
    store.error = error.name === "TypeError" ? "no answer" : error.message;
  }
  asking = false;
  for (const listener of listeners) listener();
  if (!document.hidden) timer = setTimeout(ask, store.status?.interval_ms ?? 2000);
}

function take(status) {
  // Another cluster id is another start of the member: its counters began anew.
  if (store.status && store.status.cluster.id !== status.cluster.id) {
    store.samples = [];
    store.past.clear();
    previous = null;
  }
  store.samples = store.samples.concat(status.samples).slice(-SAMPLES_MAX);
  store.status = status;
  const at = store.samples.at(-1)?.at_ms ?? status.now_ms;
  if (previous && at <= previous.at) return;
  rate(status, at);
  const counts = new Map([...status.operations.map((kind) => [`operation ${kind.kind}`, kind.count]), ...status.statements.map((kind) => [`statement ${kind.kind}`, kind.count])]);
  // Counts are of now, samples may be older.
  const seconds = previous ? (status.now_ms - previous.now) / 1000 : 0;
  store.kinds = new Map([...counts].map(([name, count]) => [name, seconds > 0 ? Math.max(0, count - (previous.counts.get(name) ?? 0)) / seconds : 0]));
  previous = { at, now: status.now_ms, counts, maps: new Map(status.maps.map((map) => [map.name, map])) };
}

function rate(status, at) {
  const seconds = previous ? (at - previous.at) / 1000 : 0;
  store.rates = new Map();
  for (const map of status.maps) {
    const before = previous?.maps.get(map.name);
    if (!before || seconds <= 0) continue;
    const per = (now, then) => Math.max(0, now - then) / seconds;
    const rates = {
      reads: per(map.gets, before.gets),
      writes: per(map.puts, before.puts),
      removes: per(map.removes, before.removes),
    };
    store.rates.set(map.name, rates);
    const past = store.past.get(map.name) ?? [];
    past.push({ t: at, v: [rates.reads, rates.writes, rates.removes] });
    if (past.length > SAMPLES_MAX) past.shift();
    store.past.set(map.name, past);
  }
  for (const name of store.past.keys()) {
    if (!store.rates.has(name)) store.past.delete(name);
  }
}

/** What happened between each two samples, per second: [{t, gets, puts, removes, statements, cpu, ..}]. */
export function steps() {
  const steps = [];
  for (let at = 1; at < store.samples.length; at += 1) {
    const [before, now] = [store.samples[at - 1], store.samples[at]];
    const seconds = (now.at_ms - before.at_ms) / 1000;
    if (seconds <= 0) continue;
    const per = (name) => Math.max(0, now[name] - before[name]) / seconds;
    steps.push({
      t: now.at_ms,
      gets: per("gets"),
      puts: per("puts"),
      removes: per("removes"),
      statements: per("statements"),
      failed: per("statements_failed"),
      cpu: now.cpu_ms === null ? null : Math.max(0, now.cpu_ms - before.cpu_ms) / 10 / seconds,
      sample: now,
    });
  }
  return steps;
}
