//! filbert-grid.
