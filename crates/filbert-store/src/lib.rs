//! filbert-store.
