//! filbert-wire.
