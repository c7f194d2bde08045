//! The draft of a changed table: its columns, their origins, and its declarations.

use datafusion::sql::sqlparser::ast::Expr;
use filbert_dialect::{AlterAction, Constraint, ConstraintKind, DeclaredType, schema_of, walk};
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Severity, SqlError};

use super::tables::{add_check, check_name, of_column};
use crate::catalog::{ColumnFacts, Mapping, TableFacts, names_column};
use crate::client_context::ClientContext;

/// The origin of a column of the changed table.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    /// The old column with this number.
    Column(usize),
    /// An expression over the old row.
    Expression(Box<Expr>),
    /// A new column.
    New,
}

/// A change that is skipped because of `IF EXISTS` or `IF NOT EXISTS`.
pub(super) struct Skipped {
    sqlstate: &'static str,
    message: String,
}

impl Skipped {
    /// Notifies the client.
    pub(super) fn tell(self, client: &ClientContext) {
        if let Some(session) = client.session() {
            session.tell(Severity::Notice, self.sqlstate, self.message);
        }
    }
}

/// The draft of a changed table.
pub(super) struct Draft {
    table: String,
    columns: Vec<(String, ColumnFacts, Origin)>,
    facts: TableFacts,
}

impl Draft {
    /// The draft of an unchanged table.
    ///
    /// # Errors
    /// The mapping is not a table.
    pub(super) fn of(mapping: &Mapping) -> Result<Draft, SqlError> {
        let Some(facts) = &mapping.table else { return Err(parsing_error(format!("{:?} is no table", mapping.name))) };
        let columns = mapping.columns.iter().zip(&facts.columns).enumerate().filter(|(_, (column, _))| !column.hidden);
        let columns =
            columns.map(|(index, (column, facts))| (column.name.clone(), facts.clone(), Origin::Column(index)));
        let table = schema_of(&mapping.name).1.to_owned();
        Ok(Draft { table, columns: columns.collect(), facts: TableFacts { columns: Vec::new(), ..(**facts).clone() } })
    }

    /// The origins of the columns, in their order.
    pub(super) fn origins(&self) -> Vec<Origin> {
        self.columns.iter().map(|(_, _, origin)| origin.clone()).collect()
    }

    /// The mapping of the changed table.
    ///
    /// # Errors
    /// The declarations are inconsistent.
    pub(super) fn mapping(self, name: &str) -> Result<Mapping, SqlError> {
        let columns = self.columns.into_iter().map(|(name, facts, _)| (name, facts)).collect();
        Mapping::of_table(name, columns, self.facts)
    }

    /// Applies one change; returns it as skipped if there is nothing to change.
    ///
    /// # Errors
    /// It refers to an object that does not exist, or adds one that does.
    pub(super) fn apply(&mut self, action: &AlterAction) -> Result<Option<Skipped>, SqlError> {
        match action {
            AlterAction::AddColumn(definition, if_not_exists) => {
                if self.columns.iter().any(|(name, ..)| *name == definition.name) {
                    if *if_not_exists {
                        return Ok(Some(self.skipped("42701", "column", &definition.name, "already exists")));
                    }
                    return Err(self.is_there(&definition.name));
                }
                let facts = of_column(definition)?;
                self.columns.push((definition.name.clone(), facts, Origin::New));
            }
            AlterAction::DropColumn(name, if_exists) => return self.drop_column(name, *if_exists),
            AlterAction::RenameColumn(from, to) => self.rename_column(from, to)?,
            AlterAction::Default(name, default) => {
                let column = self.column(name)?;
                if default.is_some() && (column.generated.is_some() || column.identity.is_some()) {
                    return Err(parsing_error(format!("column {name:?} is computed, it has no default")));
                }
                column.default.clone_from(default);
            }
            AlterAction::NotNull(name, not_null) => {
                if !not_null && self.facts.primary_key.contains(name) {
                    let text = format!("column {name:?} is in a primary key, it is never null");
                    return Err(parsing_error(text).with_sqlstate("42P16"));
                }
                self.column(name)?.not_null = *not_null;
            }
            AlterAction::Type(name, declared, using) => {
                self.column(name)?.declared = declared.clone();
                if let (Some(expr), Some((.., origin))) =
                    (using, self.columns.iter_mut().find(|(known, ..)| known == name))
                {
                    *origin = Origin::Expression(Box::new(expr.clone()));
                }
            }
            AlterAction::AddConstraint(constraint) => self.add_constraint(constraint)?,
            AlterAction::ValidateConstraint(name) => self.check_constraint(name)?,
            AlterAction::DropConstraint(name, if_exists) => return self.drop_constraint(name, *if_exists),
            AlterAction::Set(options) => {
                for (name, value) in options {
                    self.facts.options.retain(|(known, _)| known != name);
                    self.facts.options.push((name.clone(), value.clone()));
                }
            }
            AlterAction::Reset(names) => self.facts.options.retain(|(known, _)| !names.contains(known)),
            AlterAction::RenameTo(_) | AlterAction::Nothing => {}
        }
        Ok(None)
    }

    fn skipped(&self, sqlstate: &'static str, what: &str, name: &str, why: &str) -> Skipped {
        let message = format!("{what} {name:?} of relation {:?} {why}, skipping", self.table);
        Skipped { sqlstate, message }
    }

    /// Fails unless the constraint exists.
    fn check_constraint(&self, name: &str) -> Result<(), SqlError> {
        let is_key = !self.facts.primary_key.is_empty() && self.facts.primary_key_name == name;
        if is_key {
            let text =
                format!("constraint {name:?} of relation {:?} is not a foreign key or check constraint", self.table);
            return Err(parsing_error(text).with_sqlstate("42809"));
        }
        match self.facts.checks.iter().any(|check| check.name == name) {
            // Every row was checked when it was added.
            true => Ok(()),
            false => Err(self.no_constraint(name)),
        }
    }

    fn no_constraint(&self, name: &str) -> SqlError {
        let text = format!("constraint {name:?} of relation {:?} does not exist", self.table);
        parsing_error(text).with_sqlstate("42704")
    }

    fn column(&mut self, name: &str) -> Result<&mut ColumnFacts, SqlError> {
        let table = self.table.clone();
        match self.columns.iter_mut().find(|(known, ..)| known == name) {
            Some((_, facts, _)) => Ok(facts),
            None => Err(absent(&table, name)),
        }
    }

    /// The declared type of a column.
    ///
    /// # Errors
    /// There is no such column.
    pub(super) fn declared(&self, name: &str) -> Result<&DeclaredType, SqlError> {
        match self.columns.iter().find(|(known, ..)| known == name) {
            Some((_, facts, _)) => Ok(&facts.declared),
            None => Err(absent(&self.table, name)),
        }
    }

    fn is_there(&self, name: &str) -> SqlError {
        let text = format!("column {name:?} of relation {:?} already exists", self.table);
        parsing_error(text).with_sqlstate("42701")
    }

    fn drop_column(&mut self, name: &str, if_exists: bool) -> Result<Option<Skipped>, SqlError> {
        let Some(index) = self.columns.iter().position(|(known, ..)| known == name) else {
            return match if_exists {
                true => Ok(Some(self.skipped("00000", "column", name, "does not exist"))),
                false => Err(absent(&self.table, name)),
            };
        };
        if self.facts.primary_key.iter().any(|key| key == name) {
            let text = format!("column {name:?} is in the primary key of {:?}, it cannot be dropped", self.table);
            return Err(parsing_error(text).with_sqlstate("2BP01"));
        }
        self.columns.remove(index);
        // Checks that use the column are removed with it.
        self.facts.checks.retain(|check| !names_column(&check.condition.expr, name));
        match self.columns.iter().find(|(_, facts, _)| {
            facts.generated.as_ref().is_some_and(|expression| names_column(&expression.expr, name))
        }) {
            Some((other, ..)) => {
                let text = format!("column {name:?} is needed by the generated column {other:?}");
                Err(parsing_error(text).with_sqlstate("2BP01"))
            }
            None => Ok(None),
        }
    }

    fn rename_column(&mut self, from: &str, to: &str) -> Result<(), SqlError> {
        if self.columns.iter().any(|(known, ..)| known == to) {
            return Err(self.is_there(to));
        }
        let table = self.table.clone();
        let Some((name, ..)) = self.columns.iter_mut().find(|(known, ..)| known == from) else {
            return Err(absent(&table, from));
        };
        to.clone_into(name);
        let facts = &mut self.facts;
        let of_table = facts.primary_key.iter_mut().chain(&mut facts.partitioned_by).chain(&mut facts.clustered_by);
        of_table.filter(|known| *known == from).for_each(|known| to.clone_into(known));
        for check in &mut facts.checks {
            rename(&mut check.condition, from, to);
        }
        for generated in self.columns.iter_mut().filter_map(|(_, facts, _)| facts.generated.as_mut()) {
            rename(generated, from, to);
        }
        Ok(())
    }

    fn add_constraint(&mut self, constraint: &Constraint) -> Result<(), SqlError> {
        match &constraint.kind {
            ConstraintKind::PrimaryKey(_) if !self.facts.primary_key.is_empty() => {
                let text = format!("multiple primary keys for table {:?} are not allowed", self.table);
                Err(parsing_error(text).with_sqlstate("42P16"))
            }
            ConstraintKind::PrimaryKey(key) => {
                self.facts.primary_key.clone_from(key);
                if let Some(name) = &constraint.name {
                    self.facts.primary_key_name.clone_from(name);
                }
                Ok(())
            }
            ConstraintKind::Check(condition) => {
                let made = check_name(&self.table, condition, &self.facts.checks);
                add_check(&mut self.facts, constraint.name.clone().unwrap_or(made), condition.clone())
            }
        }
    }

    fn drop_constraint(&mut self, name: &str, if_exists: bool) -> Result<Option<Skipped>, SqlError> {
        if !self.facts.primary_key.is_empty() && self.facts.primary_key_name == name {
            self.facts.primary_key.clear();
            return Ok(None);
        }
        let before = self.facts.checks.len();
        self.facts.checks.retain(|check| check.name != name);
        match before == self.facts.checks.len() {
            true if if_exists => Ok(Some(self.skipped("00000", "constraint", name, "does not exist"))),
            true => Err(self.no_constraint(name)),
            false => Ok(None),
        }
    }
}

fn absent(table: &str, name: &str) -> SqlError {
    parsing_error(format!("column {name:?} of relation {table:?} does not exist")).with_sqlstate("42703")
}

/// Renames a column within an expression.
fn rename(expression: &mut filbert_dialect::Expression, from: &str, to: &str) {
    let _ = walk::change_expressions(&mut expression.expr, |expr| {
        let name = match expr {
            Expr::Identifier(name) => Some(name),
            Expr::CompoundIdentifier(names) => names.last_mut(),
            _ => None,
        };
        if let Some(name) = name
            && name.value == from
        {
            to.clone_into(&mut name.value);
        }
        std::ops::ControlFlow::<()>::Continue(())
    });
    expression.text = expression.expr.to_string();
}
