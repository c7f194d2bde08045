//! filbert.
