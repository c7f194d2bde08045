//! The relations that a query reads by name, whatever the names mean.

use std::collections::HashSet;
use std::ops::ControlFlow;

use sqlparser::ast::{ObjectName, ObjectNamePart, Query, Value, ValueWithSpan, Visitor};

use crate::walk;

/// The relations that a query reads, found in one walk.
#[derive(Debug, Default)]
pub struct Reads {
    /// The names of all relations, in the order of the text.
    pub names: Vec<ObjectName>,
    /// The names of the `WITH` queries within it.
    pub queries: HashSet<String>,
    /// The names of the parameters.
    pub parameters: HashSet<String>,
}

impl Reads {
    /// The relations of a query.
    pub fn of(query: &Query) -> Reads {
        let mut reads = Reads::default();
        let _ = walk::read(query, &mut reads);
        reads
    }

    /// The names without a schema, without those of `WITH` queries within the query.
    pub fn from_outside(&self) -> impl Iterator<Item = &str> {
        let bare = self.names.iter().filter_map(|name| match name.0.as_slice() {
            [ObjectNamePart::Identifier(bare)] => Some(bare.value.as_str()),
            _ => None,
        });
        bare.filter(|name| !self.queries.contains(*name))
    }
}

impl Visitor for Reads {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let queries = query.with.iter().flat_map(|with| &with.cte_tables);
        self.queries.extend(queries.map(|query| query.alias.name.value.clone()));
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
        if let Value::Placeholder(name) = &value.value {
            self.parameters.insert(name.clone());
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<()> {
        self.names.push(name.clone());
        ControlFlow::Continue(())
    }
}
