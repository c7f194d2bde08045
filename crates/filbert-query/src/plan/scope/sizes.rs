//! Limits of the parts of a query with costs that grow faster than their number.
//!
//! Comparing rows by their first keys takes steps for each pair of keys, ordering joins takes steps
//! for each triple of relations, each grouping set groups all rows again, and each different
//! window is a node above the one before. A hundred thousand of them are a short text. The limits
//! are no settings: no member would plan or run much more, and other databases have similar limits.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArgumentClause, FunctionArguments, GroupByExpr, NamedWindowExpr, OrderBy, OrderByKind,
    Query, Select, Visitor, WindowSpec, WindowType,
};
use filbert_dialect::walk;
use filbert_functions::error::parsing_error;
use filbert_grid::query::SqlError;

/// The maximum number of columns of one `SELECT` list and of one `GROUP BY`, as in PostgreSQL.
/// DataFusion's planner compares each of them with each other several times: three thousand
/// aggregates took nine seconds.
const ITEMS_MAX: usize = 1_664;
/// The maximum number of sort keys of one `ORDER BY`.
const SORT_KEYS_MAX: usize = 100;
/// The maximum number of relations that the joins of one `FROM` connect.
const JOINED_MAX: usize = 128;
/// The maximum number of grouping sets of one query, as in PostgreSQL.
const GROUPING_SETS_MAX: usize = 4_096;

/// The maximum number of different windows of one `SELECT`.
const WINDOWS_MAX: usize = 128;

/// Checks all parts of a query.
///
/// # Errors
/// 54011: too many columns or sort keys; 54001: too many joined relations, grouping sets or
/// windows.
pub(super) fn check(query: &Query) -> Result<(), SqlError> {
    match walk::read(query, &mut Sizes::default()) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

#[derive(Default)]
struct Sizes {
    /// The different windows of each enclosing query, the innermost last.
    windows: Vec<HashSet<WindowType>>,
}

impl Visitor for Sizes {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        self.windows.push(HashSet::new());
        match &query.order_by {
            Some(OrderBy { kind: OrderByKind::Expressions(keys), .. }) => sort_keys(keys.len()),
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<SqlError> {
        self.windows.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<SqlError> {
        self.windows.push(HashSet::new());
        at_most(select.projection.len(), ITEMS_MAX, "54011", "columns in one SELECT list")?;
        let joined = select.from.iter().map(|tree| 1 + tree.joins.len()).sum();
        at_most(joined, JOINED_MAX, "54001", "joined relations in one FROM")?;
        for window in &select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = &window.1 {
                sort_keys(keys_of(window))?;
            }
        }
        match &select.group_by {
            GroupByExpr::Expressions(groups, _) => {
                at_most(groups.len(), ITEMS_MAX, "54011", "expressions in one GROUP BY")?;
                let sets = groups.iter().map(sets_of).fold(1, usize::saturating_mul);
                at_most(sets, GROUPING_SETS_MAX, "54001", "grouping sets")
            }
            GroupByExpr::All(_) => ControlFlow::Continue(()),
        }
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<SqlError> {
        self.windows.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<SqlError> {
        let Expr::Function(function) = expression else { return ControlFlow::Continue(()) };
        let of_window = match &function.over {
            Some(WindowType::WindowSpec(window)) => keys_of(window),
            _ => 0,
        };
        if let (Some(over), Some(windows)) = (&function.over, self.windows.last_mut()) {
            windows.insert(without_frame(over));
            at_most(windows.len(), WINDOWS_MAX, "54001", "different windows in one SELECT")?;
        }
        sort_keys(of_window.max(keys_of_arguments(function)).max(function.within_group.len()))
    }
}

/// The sort keys of a window. Its rows are also sorted by its partitions.
fn keys_of(window: &WindowSpec) -> usize {
    window.partition_by.len() + window.order_by.len()
}

/// A window without its frame. Windows that differ only in their frames are computed together.
fn without_frame(window: &WindowType) -> WindowType {
    let mut window = window.clone();
    if let WindowType::WindowSpec(window) = &mut window {
        window.window_frame = None;
    }
    window
}

/// The sort keys of an aggregate's arguments.
fn keys_of_arguments(function: &Function) -> usize {
    let FunctionArguments::List(list) = &function.args else { return 0 };
    let keys = list.clauses.iter().map(|clause| match clause {
        FunctionArgumentClause::OrderBy(keys) => keys.len(),
        _ => 0,
    });
    keys.sum()
}

/// The number of grouping sets that a group stands for. The groups of a `GROUP BY` multiply.
fn sets_of(group: &Expr) -> usize {
    match group {
        Expr::Rollup(parts) => parts.len().saturating_add(1),
        Expr::Cube(parts) => {
            u32::try_from(parts.len()).ok().and_then(|parts| 1_usize.checked_shl(parts)).unwrap_or(usize::MAX)
        }
        Expr::GroupingSets(sets) => sets.len().max(1),
        _ => 1,
    }
}

fn sort_keys(count: usize) -> ControlFlow<SqlError> {
    at_most(count, SORT_KEYS_MAX, "54011", "sort keys in one ORDER BY or window")
}

fn at_most(count: usize, max: usize, sqlstate: &'static str, what: &str) -> ControlFlow<SqlError> {
    if count <= max {
        return ControlFlow::Continue(());
    }
    let count = if count == usize::MAX { "too many".to_owned() } else { count.to_string() };
    let text = format!("the statement has {count} {what}, at most {max} are allowed");
    ControlFlow::Break(parsing_error(text).with_sqlstate(sqlstate))
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::ast::Statement;
    use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    fn sqlstate_of(text: &str) -> Option<String> {
        let statements = Parser::parse_sql(&PostgreSqlDialect {}, text).unwrap();
        let Some(Statement::Query(query)) = statements.first() else { panic!("{text} is a query") };
        check(query).err().map(|error| error.sqlstate().to_owned())
    }

    fn listed(count: usize, item: impl Fn(usize) -> String) -> String {
        (0..count).map(item).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn sort_keys_are_limited_wherever_they_stand() {
        let keys = |count| listed(count, |key| format!("a % {key}"));
        for form in [
            "SELECT a FROM t ORDER BY {}",
            "SELECT a FROM t UNION SELECT b FROM t ORDER BY {}",
            "SELECT * FROM (SELECT a FROM t ORDER BY {}) x",
            "SELECT sum(a) OVER (PARTITION BY {}) FROM t",
            "SELECT sum(a) OVER (ORDER BY {}) FROM t",
            "SELECT sum(a) OVER w FROM t WINDOW w AS (ORDER BY {})",
            "SELECT array_agg(a ORDER BY {}) FROM t",
        ] {
            assert_eq!(sqlstate_of(&form.replace("{}", &keys(100))), None, "{form}");
            assert_eq!(sqlstate_of(&form.replace("{}", &keys(101))).as_deref(), Some("54011"), "{form}");
        }
    }

    #[test]
    fn columns_are_limited() {
        let columns = |count| listed(count, |at| format!("a + {at}"));
        for form in ["SELECT {} FROM t", "SELECT 1 FROM t WHERE a IN (SELECT {} FROM t)", "SELECT 1 FROM t GROUP BY {}"]
        {
            assert_eq!(sqlstate_of(&form.replace("{}", &columns(1_664))), None, "{form}");
            assert_eq!(sqlstate_of(&form.replace("{}", &columns(1_665))).as_deref(), Some("54011"), "{form}");
        }
    }

    #[test]
    fn grouping_sets_multiply() {
        let cube = |parts| format!("CUBE ({})", listed(parts, |part| format!("a{part}")));
        let grouped = |groups: &str| sqlstate_of(&format!("SELECT count(*) FROM t GROUP BY {groups}"));
        assert_eq!(grouped(&cube(12)), None);
        assert_eq!(grouped(&cube(13)).as_deref(), Some("54001"));
        assert_eq!(grouped(&cube(70)).as_deref(), Some("54001"));
        assert_eq!(grouped(&format!("{}, ROLLUP (x)", cube(12))).as_deref(), Some("54001"));
        assert_eq!(grouped(&format!("{}, x, y", cube(12))), None);
    }

    #[test]
    fn different_windows_are_limited_in_each_select() {
        let windows = |count| listed(count, |window| format!("sum(a) OVER (PARTITION BY b % {window} ORDER BY a)"));
        let (most, more) = (windows(128), windows(129));
        assert_eq!(sqlstate_of(&format!("SELECT {most} FROM t")), None);
        assert_eq!(sqlstate_of(&format!("SELECT {more} FROM t")).as_deref(), Some("54001"));
        assert_eq!(sqlstate_of(&format!("SELECT a FROM t ORDER BY {}", windows(100))), None);
        let within =
            format!("SELECT (SELECT {most} FROM t) FROM t UNION ALL SELECT {most} FROM (SELECT {most} FROM t) t");
        assert_eq!(sqlstate_of(&within), None);
        let same = listed(1_000, |at| format!("sum(a + {at}) OVER (ORDER BY a ROWS {at} PRECEDING)"));
        assert_eq!(sqlstate_of(&format!("SELECT {same} FROM t")), None);
    }

    #[test]
    fn joined_relations_are_limited() {
        let joined = |count: usize, form: &str| {
            let joins: String = (1..count).map(|number| form.replace("{}", &number.to_string())).collect();
            sqlstate_of(&format!("SELECT 1 FROM t t0{joins}"))
        };
        for form in [", t t{}", " JOIN t t{} ON true", " LEFT JOIN t t{} USING (a)"] {
            assert_eq!(joined(128, form), None, "{form}");
            assert_eq!(joined(129, form).as_deref(), Some("54001"), "{form}");
        }
    }
}
