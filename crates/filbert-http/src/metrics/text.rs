//! Prometheus' text format, version 0.0.4: families of samples, each with its help text and type.

use std::fmt::{Display, Write};

use filbert_grid::metrics::HistogramCounts;

/// The content type of the format.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The exponents of the upper bounds of histogram buckets. The bounds are powers of two in
/// nanoseconds, from a quarter of a microsecond to 17 seconds.
const BUCKET_EXPONENTS: std::ops::RangeInclusive<u32> = 8..=34;

/// Writes families of samples.
#[derive(Default)]
pub(crate) struct Families {
    out: String,
}

/// The labels of a sample: names and values.
pub(crate) type Labels<'l> = &'l [(&'l str, &'l str)];

impl Families {
    /// Writes a sample. Errors are ignored, since writing into memory does not fail.
    fn line(&mut self, name: &str, suffix: &str, labels: Labels<'_>, value: &dyn Display) {
        let out = &mut self.out;
        out.push_str(name);
        out.push_str(suffix);
        for (at, (label, text)) in labels.iter().enumerate() {
            let _ = write!(out, "{}{label}=\"", if at == 0 { '{' } else { ',' });
            for char in text.chars() {
                match char {
                    '\\' => out.push_str("\\\\"),
                    '"' => out.push_str("\\\""),
                    '\n' => out.push_str("\\n"),
                    other => out.push(other),
                }
            }
            out.push('"');
        }
        let _ = writeln!(out, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes a family of gauges, which can go up and down.
    pub(crate) fn gauges<'s>(&mut self, name: &str, help: &str, samples: impl IntoIterator<Item = (Labels<'s>, f64)>) {
        self.head(name, help, "gauge");
        for (labels, value) in samples {
            self.line(name, "", labels, &value);
        }
    }

    /// Writes a gauge. `None`: it is left out.
    pub(crate) fn gauge(&mut self, name: &str, help: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.gauges(name, help, [(&[] as Labels<'_>, value)]);
        }
    }

    /// Writes a family of counters, which begin at the start of the process. The name ends with
    /// `_total`.
    pub(crate) fn counters<'s>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'s>, u64)>,
    ) {
        self.head(name, help, "counter");
        for (labels, value) in samples {
            self.line(name, "", labels, &value);
        }
    }

    /// Writes a counter.
    pub(crate) fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.counters(name, help, [(&[] as Labels<'_>, value)]);
    }

    /// Writes a counter of seconds.
    pub(crate) fn seconds_total(&mut self, name: &str, help: &str, seconds: f64) {
        self.head(name, help, "counter");
        self.line(name, "", &[], &seconds);
    }

    /// Writes a family of histograms of durations in seconds, with one label. Empty histograms are
    /// left out.
    pub(crate) fn histograms<'s>(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        samples: impl IntoIterator<Item = (&'s str, &'s HistogramCounts)>,
    ) {
        self.head(name, help, "histogram");
        for (value, counts) in samples {
            let count = counts.count();
            if count == 0 {
                continue;
            }
            for exponent in BUCKET_EXPONENTS {
                let end = (1_u64 << exponent) as f64 / 1e9;
                let labels = [(label, value), ("le", &end.to_string())];
                self.line(name, "_bucket", &labels, &counts.below(exponent));
            }
            self.line(name, "_bucket", &[(label, value), ("le", "+Inf")], &count);
            self.line(name, "_sum", &[(label, value)], &counts.sum().as_secs_f64());
            self.line(name, "_count", &[(label, value)], &count);
        }
    }

    /// Returns the text.
    pub(crate) fn finish(self) -> String {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use filbert_grid::metrics::Histogram;

    use super::*;

    #[test]
    fn families_are_written_as_prometheus_reads_them() {
        let mut families = Families::default();
        families.gauge("a_bytes", "Bytes.", Some(1.5));
        families.gauge("left_out", "Nothing.", None);
        families.counters("b_total", "Things.", [(&[("name", "x\"\\\n")] as Labels<'_>, 7)]);
        assert_eq!(
            families.finish(),
            "# HELP a_bytes Bytes.\n# TYPE a_bytes gauge\na_bytes 1.5\n\
             # HELP b_total Things.\n# TYPE b_total counter\nb_total{name=\"x\\\"\\\\\\n\"} 7\n"
        );
    }

    #[test]
    fn buckets_of_a_histogram_add_up() {
        let histogram = Histogram::default();
        for nanoseconds in [10, 300, 1_000_000, 60_000_000_000] {
            histogram.observe(Duration::from_nanos(nanoseconds));
        }
        let mut families = Families::default();
        let empty = HistogramCounts::default();
        families.histograms("d_seconds", "Durations.", "kind", [("get", &histogram.counts()), ("put", &empty)]);
        let text = families.finish();
        assert!(text.contains("d_seconds_bucket{kind=\"get\",le=\"0.000000256\"} 1\n"), "{text}");
        assert!(text.contains("d_seconds_bucket{kind=\"get\",le=\"17.179869184\"} 3\n"), "{text}");
        assert!(text.contains("d_seconds_bucket{kind=\"get\",le=\"+Inf\"} 4\n"), "{text}");
        assert!(text.ends_with("d_seconds_sum{kind=\"get\"} 60.00100031\nd_seconds_count{kind=\"get\"} 4\n"), "{text}");
        assert!(!text.contains("put"));
    }
}
