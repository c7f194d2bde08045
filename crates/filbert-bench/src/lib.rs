//! filbert-bench.
