//! Walks over syntax trees, for visitors of every kind.
//!
//! `sqlparser` makes a copy of its walk over all that SQL has for each type of visitor, several thousand functions each.
//! Here it is made twice, once to read and once to change, for a visitor behind a pointer: the compiler has half as much to
//! do for the whole crate. Whoever visits trees calls these functions and not those of the nodes.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};

/// Shows a tree to a visitor, until the visitor breaks off.
#[expect(clippy::disallowed_methods, reason = "the one place from which trees are walked over")]
pub fn read<V: Visitor>(tree: &impl Visit, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut reading = Reading { visitor, broken: None };
    let _ = tree.visit(&mut Reader(&mut reading));
    reading.broken.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Lets a visitor change a tree, until the visitor breaks off.
#[expect(clippy::disallowed_methods, reason = "the one place from which trees are walked over")]
pub fn change<V: VisitorMut>(tree: &mut impl VisitMut, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut changing = Changing { visitor, broken: None };
    let _ = VisitMut::visit(tree, &mut Changer(&mut changing));
    changing.broken.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Shows each expression of a tree, an outer one before the inner ones.
pub fn expressions<B>(tree: &impl Visit, see: impl FnMut(&Expr) -> ControlFlow<B>) -> ControlFlow<B> {
    struct Expressions<F>(F);
    impl<B, F: FnMut(&Expr) -> ControlFlow<B>> Visitor for Expressions<F> {
        type Break = B;

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
            (self.0)(expr)
        }
    }
    read(tree, &mut Expressions(see))
}

/// Lets each expression of a tree be changed, an inner one before the outer one.
pub fn change_expressions<B>(
    tree: &mut impl VisitMut,
    change_one: impl FnMut(&mut Expr) -> ControlFlow<B>,
) -> ControlFlow<B> {
    struct Expressions<F>(F);
    impl<B, F: FnMut(&mut Expr) -> ControlFlow<B>> VisitorMut for Expressions<F> {
        type Break = B;

        fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<B> {
            (self.0)(expr)
        }
    }
    change(tree, &mut Expressions(change_one))
}

/// Shows each relation of a tree by its name.
pub fn relations<B>(tree: &impl Visit, see: impl FnMut(&ObjectName) -> ControlFlow<B>) -> ControlFlow<B> {
    struct Relations<F>(F);
    impl<B, F: FnMut(&ObjectName) -> ControlFlow<B>> Visitor for Relations<F> {
        type Break = B;

        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<B> {
            (self.0)(relation)
        }
    }
    read(tree, &mut Relations(see))
}

/// A visitor, and what it broke off with.
struct Reading<'v, V: Visitor> {
    visitor: &'v mut V,
    broken: Option<V::Break>,
}

/// A visitor that changes what it visits, and what it broke off with.
struct Changing<'v, V: VisitorMut> {
    visitor: &'v mut V,
    broken: Option<V::Break>,
}

/// Goes on, or keeps what the visitor broke off with.
fn keep<B>(broken: &mut Option<B>, step: ControlFlow<B>) -> ControlFlow<()> {
    match step {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(with) => {
            *broken = Some(with);
            ControlFlow::Break(())
        }
    }
}

/// The nodes that visitors are called for: before and behind what is within them.
macro_rules! nodes {
    ($($node:ident: $pre:ident, $post:ident;)*) => {
        /// Any visitor that reads.
        trait Reads {
            $(
                fn $pre(&mut self, node: &$node) -> ControlFlow<()>;
                fn $post(&mut self, node: &$node) -> ControlFlow<()>;
            )*
        }

        impl<V: Visitor> Reads for Reading<'_, V> {
            $(
                fn $pre(&mut self, node: &$node) -> ControlFlow<()> {
                    keep(&mut self.broken, self.visitor.$pre(node))
                }

                fn $post(&mut self, node: &$node) -> ControlFlow<()> {
                    keep(&mut self.broken, self.visitor.$post(node))
                }
            )*
        }

        /// The one type of visitor that trees are shown to.
        struct Reader<'v>(&'v mut dyn Reads);

        impl Visitor for Reader<'_> {
            type Break = ();

            $(
                fn $pre(&mut self, node: &$node) -> ControlFlow<()> {
                    self.0.$pre(node)
                }

                fn $post(&mut self, node: &$node) -> ControlFlow<()> {
                    self.0.$post(node)
                }
            )*
        }

        /// Any visitor that changes.
        trait Changes {
            $(
                fn $pre(&mut self, node: &mut $node) -> ControlFlow<()>;
                fn $post(&mut self, node: &mut $node) -> ControlFlow<()>;
            )*
        }

        impl<V: VisitorMut> Changes for Changing<'_, V> {
            $(
                fn $pre(&mut self, node: &mut $node) -> ControlFlow<()> {
                    keep(&mut self.broken, self.visitor.$pre(node))
                }

                fn $post(&mut self, node: &mut $node) -> ControlFlow<()> {
                    keep(&mut self.broken, self.visitor.$post(node))
                }
            )*
        }

        /// The one type of visitor that trees are changed by.
        struct Changer<'v>(&'v mut dyn Changes);

        impl VisitorMut for Changer<'_> {
            type Break = ();

            $(
                fn $pre(&mut self, node: &mut $node) -> ControlFlow<()> {
                    self.0.$pre(node)
                }

                fn $post(&mut self, node: &mut $node) -> ControlFlow<()> {
                    self.0.$post(node)
                }
            )*
        }
    };
}

nodes! {
    Query: pre_visit_query, post_visit_query;
    Select: pre_visit_select, post_visit_select;
    ObjectName: pre_visit_relation, post_visit_relation;
    TableFactor: pre_visit_table_factor, post_visit_table_factor;
    Expr: pre_visit_expr, post_visit_expr;
    Statement: pre_visit_statement, post_visit_statement;
    ValueWithSpan: pre_visit_value, post_visit_value;
}
