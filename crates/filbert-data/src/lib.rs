//! filbert-data.
