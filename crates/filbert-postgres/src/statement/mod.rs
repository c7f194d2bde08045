//! The texts of statements: the ends of statements, and the recognition of the protocol's own ones.

pub(crate) mod casts;
pub(crate) mod lexer;
pub(crate) mod session_statement;
