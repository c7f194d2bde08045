//! Walks over syntax trees, for visitors of every kind.
//!
//! `sqlparser` compiles its walk over the whole syntax for each type of visitor, several thousand
//! functions each. Here it is compiled twice, for reading and for changing, with a visitor behind a
//! pointer, which halves the compile time of the crate. Code that visits trees calls these
//! functions, not the methods of the nodes.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, ObjectName, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, VisitMut, Visitor, VisitorMut,
};

/// Visits a tree until the visitor breaks.
#[expect(clippy::disallowed_methods, reason = "the one place from which trees are walked over")]
pub fn read<V: Visitor>(tree: &impl Visit, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut reading = Reading { visitor, broken: None };
    let _ = tree.visit(&mut Reader(&mut reading));
    reading.broken.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Visits a tree with a visitor that changes it, until the visitor breaks.
#[expect(clippy::disallowed_methods, reason = "the one place from which trees are walked over")]
pub fn change<V: VisitorMut>(tree: &mut impl VisitMut, visitor: &mut V) -> ControlFlow<V::Break> {
    let mut changing = Changing { visitor, broken: None };
    let _ = VisitMut::visit(tree, &mut Changer(&mut changing));
    changing.broken.map_or(ControlFlow::Continue(()), ControlFlow::Break)
}

/// Visits each expression of a tree, outer ones before inner ones.
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

/// Visits each expression of a tree outside of the queries within it.
pub fn own_expressions<B>(tree: &impl Visit, see: impl FnMut(&Expr) -> ControlFlow<B>) -> ControlFlow<B> {
    struct Own<F> {
        see: F,
        /// The number of queries around the node.
        queries: usize,
    }
    impl<B, F: FnMut(&Expr) -> ControlFlow<B>> Visitor for Own<F> {
        type Break = B;

        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<B> {
            self.queries = self.queries.saturating_add(1);
            ControlFlow::Continue(())
        }

        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<B> {
            self.queries = self.queries.saturating_sub(1);
            ControlFlow::Continue(())
        }

        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<B> {
            if self.queries == 0 { (self.see)(expr) } else { ControlFlow::Continue(()) }
        }
    }
    read(tree, &mut Own { see, queries: 0 })
}

/// Changes each expression of a tree, inner ones before outer ones.
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

/// Visits each relation name of a tree.
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

/// A visitor, and its break value.
struct Reading<'v, V: Visitor> {
    visitor: &'v mut V,
    broken: Option<V::Break>,
}

/// A visitor that changes the tree, and its break value.
struct Changing<'v, V: VisitorMut> {
    visitor: &'v mut V,
    broken: Option<V::Break>,
}

/// Continues, or stores the visitor's break value.
fn keep<B>(broken: &mut Option<B>, step: ControlFlow<B>) -> ControlFlow<()> {
    match step {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(with) => {
            *broken = Some(with);
            ControlFlow::Break(())
        }
    }
}

/// The nodes that visitors are called for, before and after their children.
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

        /// The only type of visitor that reads trees.
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

        /// The only type of visitor that changes trees.
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
