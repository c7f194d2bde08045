//! filbert-client.
