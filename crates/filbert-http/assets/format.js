// Numbers, bytes, durations and moments as people read them.

const grouped = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** A whole number with its thousands apart. */
export function count(value) {
  return value === null || value === undefined ? "–" : grouped.format(value);
}

function threeDigits(value) {
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits)));
}

/** A number of at most three digits, with a unit of a thousand, a million and so on. */
export function short(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (Math.abs(value) < 1000) return Number.isInteger(value) ? String(value) : value.toFixed(value < 10 ? 1 : 0);
  const units = ["k", "M", "G", "T"];
  let at = -1;
  let rest = value;
  while (Math.abs(rest) >= 999.5 && at < units.length - 1) {
    rest /= 1000;
    at += 1;
  }
  return threeDigits(rest) + " " + units[at];
}

/** Bytes in units of 1,024, as [number, unit]. */
export function bytesParts(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return ["–", ""];
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let rest = value;
  while (rest >= 1023.5 && at < units.length - 1) {
    rest /= 1024;
    at += 1;
  }
  return [at === 0 ? String(Math.round(rest)) : threeDigits(rest), units[at]];
}

export function bytes(value) {
  return bytesParts(value).join(" ").trim();
}

/** Microseconds as µs, ms or s. */
export function micros(value) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value < 999.5) return (value < 10 && value > 0 ? value.toFixed(1).replace(/\.0$/, "") : value.toFixed(0)) + " µs";
  if (value < 999_500) return threeDigits(value / 1000) + " ms";
  if (value < 120_000_000) return threeDigits(value / 1_000_000) + " s";
  return Math.round(value / 60_000_000) + " min";
}

export function millis(value) {
  return value === null || value === undefined ? "–" : micros(value * 1000);
}

export function percent(part, whole) {
  return whole > 0 ? Math.round((100 * part) / whole) + " %" : "–";
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hour12: false });

export function timeOfDay(ms) {
  return clock.format(ms);
}

export function moment(ms) {
  return day.format(ms);
}

/** How long ago a moment was. */
export function ago(ms, now) {
  if (!ms) return "never";
  const seconds = Math.max(0, (now - ms) / 1000);
  if (seconds < 2) return "now";
  if (seconds < 60) return Math.floor(seconds) + " s ago";
  if (seconds < 3600) return Math.floor(seconds / 60) + " min ago";
  if (seconds < 86400) return Math.floor(seconds / 3600) + " h ago";
  return Math.floor(seconds / 86400) + " d ago";
}
