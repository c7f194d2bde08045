//! Limits of the work for one statement, in proportion to its tokens: the number of expressions
//! that the parser begins, and the number of expressions that rewriting copies.
//!
//! sqlparser reads parts of a statement again when its first reading of them failed, and rewriting
//! writes some operands several times. When such parts are nested, each level doubles the work, so
//! forty levels would never end. The hooks of the grammar have no place for a state. Therefore the
//! limits are in a thread-local variable while [`Limited`] exists; parsing stays on its thread.

use std::cell::Cell;
use std::ops::ControlFlow;

use filbert_grid::query::{SqlError, parsing_error};
use sqlparser::ast::{Expr, Visit};
use sqlparser::parser::ParserError;

use crate::walk;

/// The number of expressions that the parser may begin for each token. Every token begins one at
/// most; a nested expression that is read again counts again.
const BEGUN_PER_TOKEN: usize = 16;
/// The number of expressions that may be copied for each token.
const COPIED_PER_TOKEN: usize = 4;
/// The additional number of each that every statement may have.
const MORE: usize = 10_000;

#[derive(Clone, Copy)]
struct Left {
    begun: usize,
    copied: usize,
}

/// The limits while no statement is parsed, as for types and for texts of this program.
const UNLIMITED: Left = Left { begun: usize::MAX, copied: usize::MAX };

thread_local! {
    static LEFT: Cell<Left> = const { Cell::new(UNLIMITED) };
}

/// Limits the work on this thread as long as it exists.
pub(super) struct Limited(Left);

impl Limited {
    /// The limits of a statement of this many tokens.
    pub(super) fn to(tokens: usize) -> Limited {
        let times = |factor: usize| tokens.saturating_mul(factor).saturating_add(MORE);
        Limited(LEFT.replace(Left { begun: times(BEGUN_PER_TOKEN), copied: times(COPIED_PER_TOKEN) }))
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        LEFT.set(self.0);
    }
}

/// Counts an expression that the parser begins.
///
/// # Errors
/// The parser has begun too many. It does not read anything again after this error.
pub(super) fn begin() -> Result<(), ParserError> {
    let left = LEFT.get();
    match left.begun.checked_sub(1) {
        Some(begun) => {
            LEFT.set(Left { begun, ..left });
            Ok(())
        }
        None => Err(ParserError::RecursionLimitExceeded),
    }
}

/// Counts the expressions in a tree that is copied.
///
/// # Errors
/// 54001: too many have been copied.
pub(super) fn copy(tree: &impl Visit) -> Result<(), SqlError> {
    let mut left = LEFT.get();
    let count = |_: &Expr| match left.copied.checked_sub(1) {
        Some(copied) => {
            left.copied = copied;
            ControlFlow::Continue(())
        }
        None => ControlFlow::Break(()),
    };
    let counted = walk::expressions(tree, count);
    LEFT.set(left);
    match counted {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(too_complex()),
    }
}

/// Whether one of the limits is reached.
pub(super) fn is_spent() -> bool {
    let left = LEFT.get();
    left.begun == 0 || left.copied == 0
}

/// The error for a statement that reaches one of the limits.
#[cold]
pub(super) fn too_complex() -> SqlError {
    let text = "the statement is too complex: parts that are read or written several times are nested in each other";
    parsing_error(text).with_sqlstate("54001")
}

#[cfg(test)]
mod tests {
    use filbert_grid::query::Dialect;

    use crate::{DefaultPlace, Limits, parse};

    const LEVELS: usize = 30;

    /// Parses a text, and returns the SQLSTATE of the error.
    fn parsed(text: &str, of: Dialect) -> Result<(), String> {
        let parsed = parse(text, of, &Limits::default(), &DefaultPlace);
        parsed.map(drop).map_err(|error| error.sqlstate().to_owned())
    }

    fn nested(before: &str, behind: &str) -> String {
        format!("SELECT {}x{}", before.repeat(LEVELS), behind.repeat(LEVELS))
    }

    #[test]
    fn operands_that_are_written_several_times_are_not_nested_without_a_limit() {
        for (before, behind) in [
            ("nullif(", ", 1)"),
            ("nullif(1, ", ")"),
            ("((", ", 1) < (1, 2))"),
            ("((", ", 1) IN ((1, 2), (3, 4)))"),
            ("(1, 2) IN (SELECT 1, 2 WHERE ", ")"),
            ("(", " LIKE ANY (ARRAY['a', 'b']))"),
            ("(", " ~ ALL (ARRAY['a', 'b']))"),
            ("(", " < ANY ('{a}'))"),
            ("(SELECT 1 FROM json_each(", "))"),
            ("(", " BETWEEN SYMMETRIC 1 AND 2)"),
            ("(1 BETWEEN SYMMETRIC ", " AND 2)"),
        ] {
            let text = nested(before, behind);
            assert_eq!(parsed(&text, Dialect::Postgres), Err("54001".to_owned()), "{text}");
        }
        let between = nested("(", " BETWEEN SYMMETRIC 1 AND 2)");
        assert_eq!(parsed(&between, Dialect::Hazelcast), Err("54001".to_owned()));
        let (keys, calls) = (vec!["a"; 1_000].join(", "), vec!["sum(b) OVER w"; 1_000].join(", "));
        let windows = format!("SELECT {calls} FROM t WINDOW w AS (PARTITION BY {keys})");
        for of in [Dialect::Hazelcast, Dialect::Crate, Dialect::Postgres] {
            assert_eq!(parsed(&windows, of), Err("54001".to_owned()));
        }
        assert_eq!(parsed("SELECT nullif(nullif(nullif(nullif(a, 1), 2), 3), 4)", Dialect::Postgres), Ok(()));
    }

    #[test]
    fn parts_that_are_read_again_are_not_nested_without_a_limit() {
        for of in [Dialect::Hazelcast, Dialect::Crate, Dialect::Postgres] {
            assert_eq!(parsed(&nested("a IN ((SELECT 1 WHERE ", "))"), of), Ok(()));
            assert_eq!(parsed(&nested("a IN ((SELECT 1 WHERE ", "), (SELECT 2))"), of), Ok(()));
            assert_eq!(parsed(&nested("a IN ((SELECT 1 WHERE ", ") UNION SELECT 2)"), of), Ok(()));
            // Invalid at the innermost level.
            for before in ["a IN (SELECT(", "a IN ((SELECT 1 WHERE ", "a IN (VALUES ("] {
                assert!(parsed(&format!("SELECT {}", before.repeat(60)), of).is_err());
            }
        }
    }

    #[test]
    fn lists_become_trees_that_are_not_deep() {
        let (rows, texts) = (vec!["(1, 2)"; 100_000].join(", "), vec!["'a'"; 100_000].join(", "));
        assert_eq!(parsed(&format!("SELECT (1, 2) IN ({rows})"), Dialect::Postgres), Ok(()));
        assert_eq!(parsed(&format!("SELECT x LIKE ANY (ARRAY[{texts}])"), Dialect::Postgres), Ok(()));
        let deep = format!("SELECT '{}{}'::int[]", "{".repeat(100_000), "}".repeat(100_000));
        assert_eq!(parsed(&deep, Dialect::Postgres), Err("22P02".to_owned()));
        assert_eq!(parsed("SELECT '{{{{{{1}}}}}}'::int[]", Dialect::Postgres), Ok(()));
        let row = vec!["1"; 100_000].join(", ");
        assert_eq!(parsed(&format!("SELECT ({row}) = ({row})"), Dialect::Postgres), Ok(()));
        assert_eq!(parsed(&format!("SELECT ({row}) < ({row})"), Dialect::Postgres), Err("54001".to_owned()));
    }

    #[test]
    fn tokens_are_removed_in_linear_time() {
        let text = vec!["a NOT LIKE ALL (b) OR trim(FROM c) = d"; 50_000].join(" OR ");
        let text = format!("SELECT {text}");
        assert_eq!(parsed(&text, Dialect::Postgres), Ok(()));
        let frames = "x ROWS 1 PRECEDING EXCLUDE NO OTHERS, ".repeat(100_000);
        assert_eq!(parsed(&format!("SELECT {frames}"), Dialect::Postgres), Err("42601".to_owned()));
        let names: Vec<String> = (0..100_000).map(|number| format!("{number} + a")).collect();
        assert_eq!(parsed(&format!("SELECT {}", names.join(", ")), Dialect::Crate), Ok(()));
    }
}
