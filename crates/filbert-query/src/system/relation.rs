//! System relations: columns as one line of text, and a function that makes the rows for each
//! query.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use arrow_array::builder::{Int16Builder, Int64Builder, ListBuilder, StringViewBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array, RecordBatch,
    StringViewArray, TimestampMicrosecondArray,
};
use arrow_schema::{Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{MemTable, Session, TableProvider};
use datafusion::common::Result;
use datafusion::datasource::TableType;
use datafusion::logical_expr::Expr;
use datafusion::physical_plan::ExecutionPlan;
use filbert_data::FieldType;
use filbert_functions::context::StatementContext;
use filbert_grid::query::Dialect;

use super::scene::Scene;
use crate::scan::view::ViewOfRun;
use crate::server::Server;

/// The declaration of a relation.
pub(crate) struct Relation {
    pub(crate) name: &'static str,
    /// Its columns: PostgreSQL names and types separated by commas, such as
    /// `oid oid, relname name, relchecks int2=0`. The value after `=` is the default of a row; the
    /// default is null otherwise.
    pub(crate) columns: &'static str,
    pub(crate) rows: fn(&Scene, &mut Rows<'_>),
}

/// The rows of a relation that is empty here.
pub(crate) fn no_rows(_: &Scene, _: &mut Rows<'_>) {}

/// A value of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Cell {
    #[default]
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Cow<'static, str>),
    Ints(Vec<i64>),
    Texts(Vec<String>),
}

impl From<bool> for Cell {
    fn from(value: bool) -> Cell {
        Cell::Bool(value)
    }
}

impl From<i64> for Cell {
    fn from(value: i64) -> Cell {
        Cell::Int(value)
    }
}

impl From<i32> for Cell {
    fn from(value: i32) -> Cell {
        Cell::Int(value.into())
    }
}

impl From<usize> for Cell {
    fn from(value: usize) -> Cell {
        Cell::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Cell {
        Cell::Float(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Cell {
        Cell::Text(Cow::Owned(value.to_owned()))
    }
}

impl From<&String> for Cell {
    fn from(value: &String) -> Cell {
        Cell::Text(Cow::Owned(value.clone()))
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Cell {
        Cell::Text(Cow::Owned(value))
    }
}

impl From<Vec<i64>> for Cell {
    fn from(value: Vec<i64>) -> Cell {
        Cell::Ints(value)
    }
}

impl From<Vec<String>> for Cell {
    fn from(value: Vec<String>) -> Cell {
        Cell::Texts(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, Into::into)
    }
}

/// A column of a relation.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    /// The name of its type in `pg_type`.
    pub(crate) type_name: &'static str,
    pub(crate) field_type: FieldType,
    default: Cell,
}

/// A relation with parsed columns.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) columns: Vec<Column>,
    schema: SchemaRef,
    rows: fn(&Scene, &mut Rows<'_>),
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The stored type of a PostgreSQL type.
fn field_type(name: &str) -> FieldType {
    match name {
        "bool" => FieldType::Boolean,
        "int2" => FieldType::SmallInt,
        "int4" => FieldType::Integer,
        // OIDs are unsigned 32-bit integers.
        "int8" | "oid" | "xid" | "regproc" => FieldType::BigInt,
        "float4" => FieldType::Real,
        "float8" => FieldType::Double,
        "timestamptz" => FieldType::TimestampTz,
        "json" => FieldType::Json,
        "int2vector" | "_int2" => FieldType::Array(Box::new(FieldType::SmallInt)),
        "oidvector" | "_oid" | "_int4" | "_int8" => FieldType::Array(Box::new(FieldType::BigInt)),
        "_text" | "_name" | "_char" | "_aclitem" => FieldType::Array(Box::new(FieldType::Varchar)),
        _ => FieldType::Varchar,
    }
}

impl Column {
    fn read(text: &'static str) -> Column {
        let (declared, default) = match text.split_once('=') {
            Some((declared, default)) => (declared, Some(default)),
            None => (text, None),
        };
        let (name, type_name) = declared.trim().split_once(' ').unwrap_or((declared.trim(), "text"));
        let field_type = field_type(type_name);
        let default = match (default, &field_type) {
            (None, _) => Cell::Null,
            (Some(text), FieldType::Boolean) => Cell::Bool(text == "t"),
            (Some(text), FieldType::Varchar | FieldType::Json) => Cell::Text(Cow::Borrowed(text)),
            (Some(text), FieldType::Double | FieldType::Real) => text.parse().map_or(Cell::Null, Cell::Float),
            (Some(text), _) => text.parse().map_or(Cell::Null, Cell::Int),
        };
        Column { name, type_name, field_type, default }
    }

    /// The column for plans, with its PostgreSQL type where drivers read it.
    fn field(&self) -> Field {
        let field = filbert_functions::types::field(self.name, &self.field_type, true);
        let is_own = matches!(
            self.type_name,
            "oid" | "xid" | "name" | "char" | "regproc" | "int2vector" | "oidvector" | "_oid" | "_name" | "_char"
        );
        match u32::try_from(self.type_oid()) {
            Ok(oid) if is_own => filbert_functions::types::with_pg_type(field, oid),
            _ => field,
        }
    }

    /// The OID of its type in PostgreSQL.
    pub(crate) fn type_oid(&self) -> i64 {
        match self.type_name {
            // In SQL, this name refers to another type.
            "char" => 18,
            "_char" => 1002,
            name => filbert_functions::pg_types::by_name(name).unwrap_or(25),
        }
    }
}

impl Table {
    pub(crate) fn read(relation: &Relation) -> Table {
        let columns: Vec<Column> = relation.columns.split(',').map(Column::read).collect();
        let fields = columns.iter().map(Column::field);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        Table { name: relation.name, columns, schema, rows: relation.rows }
    }

    /// Its current rows.
    pub(crate) fn batch(&self, scene: &Scene) -> Result<RecordBatch> {
        let mut rows = Rows { table: self, cells: self.columns.iter().map(|_| Vec::new()).collect(), unknown: None };
        (self.rows)(scene, &mut rows);
        let arrays = self.columns.iter().zip(&rows.cells).map(|(column, cells)| array(&column.field_type, cells));
        let count = rows.cells.first().map_or(0, Vec::len);
        let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(count));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), arrays.collect(), &options)?)
    }
}

/// The rows of a relation under construction.
pub(crate) struct Rows<'t> {
    table: &'t Table,
    /// By column.
    cells: Vec<Vec<Cell>>,
    /// A column in a row that the relation does not have: a defect in the relation's function.
    unknown: Option<&'static str>,
}

impl Rows<'_> {
    /// Adds a row with these values and defaults for the other columns.
    pub(crate) fn push<const N: usize>(&mut self, row: [(&'static str, Cell); N]) {
        for (column, cells) in self.table.columns.iter().zip(&mut self.cells) {
            cells.push(column.default.clone());
        }
        for (name, cell) in row {
            let at = self.table.columns.iter().position(|column| column.name == name);
            match at.and_then(|at| self.cells.get_mut(at)).and_then(|cells| cells.last_mut()) {
                Some(place) => *place = cell,
                None => self.unknown = Some(name),
            }
        }
    }
}

/// A row of a relation: `row!(rows, name: value, ..)`.
macro_rules! row {
    ($rows:expr, $($name:ident: $value:expr),+ $(,)?) => {
        $rows.push([$((stringify!($name), $crate::system::relation::Cell::from($value))),+])
    };
}
pub(crate) use row;

fn array(field_type: &FieldType, cells: &[Cell]) -> ArrayRef {
    let int = |cell: &Cell| match cell {
        Cell::Int(value) => Some(*value),
        _ => None,
    };
    let float = |cell: &Cell| match cell {
        Cell::Float(value) => Some(*value),
        Cell::Int(value) => Some(*value as f64),
        _ => None,
    };
    match field_type {
        FieldType::Boolean => {
            let bool = |cell: &Cell| if let Cell::Bool(value) = cell { Some(*value) } else { None };
            Arc::new(cells.iter().map(bool).collect::<BooleanArray>())
        }
        FieldType::SmallInt => Arc::new(cells.iter().map(|cell| int(cell)?.try_into().ok()).collect::<Int16Array>()),
        FieldType::Integer => Arc::new(cells.iter().map(|cell| int(cell)?.try_into().ok()).collect::<Int32Array>()),
        FieldType::BigInt => Arc::new(cells.iter().map(int).collect::<Int64Array>()),
        FieldType::Real => {
            Arc::new(cells.iter().map(|cell| float(cell).map(|value| value as f32)).collect::<Float32Array>())
        }
        FieldType::Double => Arc::new(cells.iter().map(float).collect::<Float64Array>()),
        FieldType::TimestampTz => {
            Arc::new(cells.iter().map(int).collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
        }
        FieldType::Array(item) if **item == FieldType::SmallInt => {
            let mut builder = ListBuilder::new(Int16Builder::new());
            for cell in cells {
                builder.append_option(match cell {
                    Cell::Ints(values) => Some(values.iter().map(|value| i16::try_from(*value).ok())),
                    _ => None,
                });
            }
            Arc::new(builder.finish())
        }
        FieldType::Array(item) if **item == FieldType::BigInt => {
            let mut builder = ListBuilder::new(Int64Builder::new());
            for cell in cells {
                builder.append_option(match cell {
                    Cell::Ints(values) => Some(values.iter().map(|value| Some(*value))),
                    _ => None,
                });
            }
            Arc::new(builder.finish())
        }
        FieldType::Array(_) => {
            let mut builder = ListBuilder::new(StringViewBuilder::new());
            for cell in cells {
                builder.append_option(match cell {
                    Cell::Texts(values) => Some(values.iter().map(Some)),
                    _ => None,
                });
            }
            Arc::new(builder.finish())
        }
        _ => {
            let text = |cell: &Cell| match cell {
                Cell::Text(text) => Some(text.to_string()),
                Cell::Null => None,
                Cell::Bool(value) => Some(value.to_string()),
                Cell::Int(value) => Some(value.to_string()),
                Cell::Float(value) => Some(value.to_string()),
                Cell::Ints(_) | Cell::Texts(_) => None,
            };
            Arc::new(cells.iter().map(text).collect::<StringViewArray>())
        }
    }
}

/// A relation for DataFusion.
#[derive(Debug)]
pub(crate) struct SystemTable {
    pub(crate) table: &'static Table,
    pub(crate) server: Arc<Server>,
    pub(crate) dialect: Dialect,
}

#[async_trait]
impl TableProvider for SystemTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::View
    }

    /// Rows are made when a query starts to run, because plans are cached and the content changes.
    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let context = StatementContext::of(state.config_options());
        let session = context.and_then(|context| context.session().cloned());
        let scene = Scene::new(self.server.clone(), session, self.dialect).reading(ViewOfRun::of(state.config()));
        let batch = self.table.batch(&scene)?;
        let rows = MemTable::try_new(self.table.schema.clone(), vec![vec![batch]])?;
        rows.scan(state, projection, &[], limit).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_from_a_line() {
        let relation = Relation { name: "t", columns: "oid oid, name name, n int2=7, b bool=f", rows: no_rows };
        let table = Table::read(&relation);
        let names: Vec<_> = table.columns.iter().map(|column| (column.name, column.type_name)).collect();
        assert_eq!(names, [("oid", "oid"), ("name", "name"), ("n", "int2"), ("b", "bool")]);
        let mut rows = Rows { table: &table, cells: vec![Vec::new(); 4], unknown: None };
        row!(rows, oid: 1, name: "x");
        assert_eq!(
            rows.cells,
            [vec![Cell::Int(1)], vec![Cell::from("x")], vec![Cell::Int(7)], vec![Cell::Bool(false)]]
        );
        rows.push([("nonsense", Cell::Null)]);
        assert_eq!(rows.unknown, Some("nonsense"));
    }
}
