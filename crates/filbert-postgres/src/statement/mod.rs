//! Statements as texts: where one ends, and which of them the protocol itself owns.

pub(crate) mod casts;
pub(crate) mod lexer;
pub(crate) mod own;
