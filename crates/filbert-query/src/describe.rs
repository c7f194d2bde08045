//! What can be told of a statement before it runs: its kind, its parameters, its columns.

use std::sync::Arc;

use arrow_schema::DataType;
use filbert_data::FieldType;
use filbert_grid::query::{ColumnMeta, Command, Description, SqlError};

use crate::asker::Asker;
use crate::dialect::Parsed;
use crate::engine::{Inner, Plan};
use crate::types::field_type_of_arrow;

/// The column of statements that answer with lines of text.
fn lines(name: &str) -> Arc<[ColumnMeta]> {
    Arc::from([ColumnMeta { name: name.to_owned(), field_type: FieldType::Varchar, nullable: true }])
}

/// Describes a statement; `types` are those of its parameters that the caller knows.
pub(crate) async fn describe(
    engine: &Inner,
    text: &str,
    asker: &Asker,
    types: &[Option<FieldType>],
) -> Result<Arc<Description>, SqlError> {
    let plan = engine.plan(text, asker).await?;
    let description = match &*plan {
        Plan::Query { planned, .. } => Description {
            command: Command::Select,
            parameters: parameters(&planned.parameters, types),
            columns: Some(planned.columns.clone()),
        },
        Plan::Change { statement, .. } => Description {
            command: match statement.parsed {
                Parsed::Update(_) => Command::Update,
                Parsed::Delete(_) => Command::Delete,
                _ => Command::Insert,
            },
            parameters: parameters(&vec![None; statement.parameters], types),
            columns: None,
        },
        Plan::Other(statement) => {
            let (command, columns) = of_other(&statement.parsed);
            let parameters = parameters(&vec![None; statement.parameters], types);
            Description { command: Command::Other(command), parameters, columns }
        }
    };
    Ok(Arc::new(description))
}

/// What the caller knows comes first, then what the plan asks for; any value is a text else.
fn parameters(wanted: &[Option<DataType>], known: &[Option<FieldType>]) -> Arc<[FieldType]> {
    let of = |(index, wanted): (usize, &Option<DataType>)| match known.get(index) {
        Some(Some(known)) => known.clone(),
        _ => wanted.as_ref().map_or(FieldType::Varchar, field_type_of_arrow),
    };
    wanted.iter().enumerate().map(of).collect()
}

/// The words that PostgreSQL reports, and the columns.
fn of_other(parsed: &Parsed) -> (&'static str, Option<Arc<[ColumnMeta]>>) {
    match parsed {
        Parsed::Explain { .. } => ("EXPLAIN", Some(lines("rel"))),
        Parsed::Show(_) => ("SHOW", Some(lines("name"))),
        Parsed::CreateMapping(_) => ("CREATE MAPPING", None),
        Parsed::DropMapping { .. } => ("DROP MAPPING", None),
        Parsed::CreateIndex(_) => ("CREATE INDEX", None),
        Parsed::DropIndex { .. } => ("DROP INDEX", None),
        Parsed::CreateView { .. } => ("CREATE VIEW", None),
        Parsed::DropView { .. } => ("DROP VIEW", None),
        Parsed::Insert(_) | Parsed::Update(_) | Parsed::Delete(_) | Parsed::Query(_) => ("SELECT", None),
    }
}
