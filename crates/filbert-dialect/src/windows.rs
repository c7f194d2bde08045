//! Named windows: each call gets a complete copy of the window that it names.
//!
//! DataFusion supports a plain window name, but ignores the parts that `OVER (w ORDER BY ..)`
//! inherits from `w`.

use std::ops::ControlFlow;

use filbert_grid::query::{SqlError, parsing_error};
use sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, OrderByExpr, Query, Select, VisitorMut, WindowSpec, WindowType,
};

use crate::{walk, work};

/// Resolves the windows in the expressions of a SELECT.
pub(super) fn resolve(select: &mut Select) -> ControlFlow<SqlError> {
    let windows = match defined(&select.named_window) {
        Ok(windows) => windows,
        Err(error) => return ControlFlow::Break(error),
    };
    for item in &mut select.projection {
        walk::change(item, &mut Named { windows: &windows, depth: 0 })?;
    }
    ControlFlow::Continue(())
}

/// Resolves the windows in the sort keys of such a SELECT.
pub(super) fn resolve_order(select: &Select, order: &mut [OrderByExpr]) -> ControlFlow<SqlError> {
    let windows = match defined(&select.named_window) {
        Ok(windows) => windows,
        Err(error) => return ControlFlow::Break(error),
    };
    for item in order {
        walk::change(item, &mut Named { windows: &windows, depth: 0 })?;
    }
    ControlFlow::Continue(())
}

/// The windows of a WINDOW clause. Each may start with an earlier one.
fn defined(definitions: &[NamedWindowDefinition]) -> Result<Vec<(String, WindowSpec)>, SqlError> {
    let mut windows: Vec<(String, WindowSpec)> = Vec::with_capacity(definitions.len());
    for NamedWindowDefinition(name, definition) in definitions {
        if windows.iter().any(|(known, _)| *known == name.value) {
            return Err(refused(&format!("window \"{}\" is already defined", name.value)));
        }
        let window = match definition {
            NamedWindowExpr::NamedWindow(other) => copied(find(&windows, other)?)?,
            NamedWindowExpr::WindowSpec(window) => complete(&windows, window.clone())?,
        };
        windows.push((name.value.clone(), window));
    }
    Ok(windows)
}

fn find<'w>(windows: &'w [(String, WindowSpec)], name: &Ident) -> Result<&'w WindowSpec, SqlError> {
    let found = windows.iter().find(|(known, _)| *known == name.value).map(|(_, window)| window);
    found.ok_or_else(|| parsing_error(format!("window \"{}\" does not exist", name.value)).with_sqlstate("42704"))
}

/// A window with the parts that it inherits from the window that it names.
fn complete(windows: &[(String, WindowSpec)], window: WindowSpec) -> Result<WindowSpec, SqlError> {
    let Some(name) = &window.window_name else { return Ok(window) };
    let of = find(windows, name)?;
    let name = &name.value;
    if !window.partition_by.is_empty() {
        return Err(refused(&format!("cannot override PARTITION BY clause of window \"{name}\"")));
    }
    if !window.order_by.is_empty() && !of.order_by.is_empty() {
        return Err(refused(&format!("cannot override ORDER BY clause of window \"{name}\"")));
    }
    if of.window_frame.is_some() {
        return Err(refused(&format!("cannot copy window \"{name}\" because it has a frame clause")));
    }
    let WindowSpec { partition_by, order_by, .. } = copied(of)?;
    let order_by = if window.order_by.is_empty() { order_by } else { window.order_by };
    Ok(WindowSpec { window_name: None, partition_by, order_by, window_frame: window.window_frame })
}

/// A copy of a window, which is counted.
fn copied(window: &WindowSpec) -> Result<WindowSpec, SqlError> {
    work::copy(&window.partition_by)?;
    work::copy(&window.order_by)?;
    Ok(window.clone())
}

fn refused(message: &str) -> SqlError {
    parsing_error(message).with_sqlstate("42P20")
}

struct Named<'w> {
    windows: &'w [(String, WindowSpec)],
    /// The number of enclosing queries. Their windows are handled separately.
    depth: usize,
}

impl VisitorMut for Named<'_> {
    type Break = SqlError;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.depth = self.depth.saturating_add(1);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<SqlError> {
        self.depth = self.depth.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<SqlError> {
        let Expr::Function(function) = expression else { return ControlFlow::Continue(()) };
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let resolved = match &function.over {
            Some(WindowType::NamedWindow(name)) => find(self.windows, name).and_then(copied),
            Some(WindowType::WindowSpec(window)) if window.window_name.is_some() => {
                complete(self.windows, window.clone())
            }
            _ => return ControlFlow::Continue(()),
        };
        match resolved {
            Ok(window) => {
                function.over = Some(WindowType::WindowSpec(window));
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }
}
