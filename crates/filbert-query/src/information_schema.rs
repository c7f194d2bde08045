//! `information_schema`: mappings, views and their columns as tables, with Hazelcast's columns.
//!
//! A table holds what the catalog had when the statement was planned.

use std::fmt;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use async_trait::async_trait;
use datafusion::catalog::{MemTable, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use filbert_data::FieldType;

use crate::catalog::{Catalog, external_name};
use crate::plan::session::{CATALOG, SCHEMA as PUBLIC};
use crate::tables::Tables;

/// The schema's name.
pub(crate) const SCHEMA: &str = "information_schema";

const TABLES: [&str; 4] = ["columns", "mappings", "tables", "views"];

/// The tables of the schema.
pub(crate) fn schema(tables: &Arc<Tables>) -> Arc<dyn SchemaProvider> {
    Arc::new(InformationSchema { catalog: tables.catalog().clone() })
}

#[derive(Clone)]
struct InformationSchema {
    catalog: Arc<Catalog>,
}

impl fmt::Debug for InformationSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformationSchema").finish_non_exhaustive()
    }
}

#[async_trait]
impl SchemaProvider for InformationSchema {
    fn table_names(&self) -> Vec<String> {
        TABLES.map(str::to_owned).to_vec()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>, DataFusionError> {
        let rows = match name {
            "columns" => columns(&self.catalog)?,
            "mappings" => mappings(&self.catalog)?,
            "tables" => tables(&self.catalog)?,
            "views" => views(&self.catalog)?,
            _ => return Ok(None),
        };
        Ok(Some(Arc::new(MemTable::try_new(rows.schema(), vec![vec![rows]])?)))
    }

    fn table_exist(&self, name: &str) -> bool {
        TABLES.contains(&name)
    }
}

/// Rows of texts under their columns' names.
struct Rows<const N: usize> {
    names: [&'static str; N],
    rows: Vec<[Option<String>; N]>,
}

impl<const N: usize> Rows<N> {
    fn of(names: [&'static str; N]) -> Self {
        Rows { names, rows: Vec::new() }
    }

    /// The rows; columns whose names are among `numbers` as whole numbers.
    fn batch(self, numbers: &[&str]) -> Result<RecordBatch> {
        let mut fields = Vec::with_capacity(N);
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(N);
        for (at, name) in self.names.into_iter().enumerate() {
            let texts = self.rows.iter().map(|row| row.get(at).and_then(Option::as_deref));
            if numbers.contains(&name) {
                fields.push(Field::new(name, DataType::Int32, true));
                arrays.push(Arc::new(texts.map(|text| text?.parse().ok()).collect::<Int32Array>()));
            } else {
                fields.push(Field::new(name, DataType::Utf8View, true));
                arrays.push(Arc::new(texts.collect::<StringViewArray>()));
            }
        }
        Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
    }
}

fn some(text: impl Into<String>) -> Option<String> {
    Some(text.into())
}

fn mappings(catalog: &Catalog) -> Result<RecordBatch> {
    let mut rows = Rows::of([
        "table_catalog",
        "table_schema",
        "table_name",
        "mapping_external_name",
        "mapping_type",
        "mapping_options",
    ]);
    for mapping in catalog.mappings() {
        let external = format!("\"{}\"", mapping.external_name.replace('"', "\"\""));
        rows.rows.push([
            some(CATALOG),
            some(PUBLIC),
            some(&mapping.name),
            some(external),
            some("IMap"),
            some(json_of(&mapping.options)),
        ]);
    }
    rows.batch(&[])
}

/// Options as a JSON object.
fn json_of(options: &[(String, String)]) -> String {
    let mut text = String::from("{");
    for (at, (key, value)) in options.iter().enumerate() {
        if at > 0 {
            text.push(',');
        }
        crate::functions::push_json_text(key, &mut text);
        text.push(':');
        crate::functions::push_json_text(value, &mut text);
    }
    text.push('}');
    text
}

fn columns(catalog: &Catalog) -> Result<RecordBatch> {
    let mut rows = Rows::of([
        "table_catalog",
        "table_schema",
        "table_name",
        "column_name",
        "column_external_name",
        "ordinal_position",
        "is_nullable",
        "data_type",
    ]);
    let mut push = |table: &str, column: &str, external: Option<String>, at: usize, field_type: &FieldType| {
        let data_type = match field_type {
            FieldType::Decimal(_) => "DECIMAL".to_owned(),
            FieldType::Char => "VARCHAR".to_owned(),
            other => other.to_string(),
        };
        rows.rows.push([
            some(CATALOG),
            some(PUBLIC),
            some(table),
            some(column),
            external,
            some((at + 1).to_string()),
            some("true"),
            some(data_type),
        ]);
    };
    for mapping in catalog.mappings() {
        for (at, column) in mapping.columns.iter().filter(|column| !column.hidden).enumerate() {
            push(&mapping.name, &column.name, some(external_name(column)), at, &column.field_type);
        }
    }
    for view in catalog.views() {
        for (at, (name, field_type)) in view.columns.iter().enumerate() {
            push(&view.name, name, None, at, field_type);
        }
    }
    rows.batch(&["ordinal_position"])
}

fn tables(catalog: &Catalog) -> Result<RecordBatch> {
    let mut rows = Rows::of([
        "table_catalog",
        "table_schema",
        "table_name",
        "table_type",
        "self_referencing_column_name",
        "reference_generation",
        "user_defined_type_catalog",
        "user_defined_type_schema",
        "user_defined_type_name",
        "is_insertable_into",
        "is_typed",
        "commit_action",
    ]);
    let mut push = |name: &str, kind: &str, insertable: &str| {
        rows.rows.push([
            some(CATALOG),
            some(PUBLIC),
            some(name),
            some(kind),
            None,
            None,
            None,
            None,
            None,
            some(insertable),
            some("NO"),
            None,
        ]);
    };
    catalog.mapping_names().iter().for_each(|name| push(name, "BASE TABLE", "YES"));
    catalog.view_names().iter().for_each(|name| push(name, "VIEW", "NO"));
    rows.batch(&[])
}

fn views(catalog: &Catalog) -> Result<RecordBatch> {
    let mut rows = Rows::of([
        "table_catalog",
        "table_schema",
        "table_name",
        "view_definition",
        "check_option",
        "is_updatable",
        "insertable_into",
    ]);
    for view in catalog.views() {
        rows.rows.push([
            some(CATALOG),
            some(PUBLIC),
            some(&view.name),
            some(&view.query),
            some("NONE"),
            some("NO"),
            some("NO"),
        ]);
    }
    rows.batch(&[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Mapping, View};
    use crate::dialect::{Limits, Parsed, parse};

    #[tokio::test]
    async fn tables_tell_what_the_catalog_has() {
        let catalog = Arc::new(Catalog::new(10));
        let text = "CREATE MAPPING m EXTERNAL NAME \"the map\" (__key INT, a DECIMAL(5, 2), b VARCHAR EXTERNAL NAME this.c) \
                    TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='json-flat')";
        let Parsed::CreateMapping(statement) =
            parse(text, filbert_grid::query::Dialect::Hazelcast, &Limits::default()).unwrap().parsed
        else {
            panic!("{text}")
        };
        catalog.put_mapping(Mapping::of(&statement).unwrap(), false, false).unwrap();
        let view = View {
            name: "v".into(),
            query: "SELECT a FROM m".into(),
            dialect: Default::default(),
            columns: vec![("a".into(), FieldType::Double)],
        };
        catalog.put_view(view, false, false).unwrap();
        let schema = InformationSchema { catalog };
        let context = datafusion::prelude::SessionContext::new();
        for (table, expected) in [
            ("mappings", vec![r#"hazelcast|public|m|"the map"|IMap|{"keyFormat":"int","valueFormat":"json-flat"}"#]),
            (
                "columns",
                vec![
                    "hazelcast|public|m|__key|__key|1|true|INTEGER",
                    "hazelcast|public|m|a|this.a|2|true|DECIMAL",
                    "hazelcast|public|m|b|this.c|3|true|VARCHAR",
                    "hazelcast|public|v|a||1|true|DOUBLE",
                ],
            ),
            ("tables", vec!["hazelcast|public|m|BASE TABLE||||||YES|NO|", "hazelcast|public|v|VIEW||||||NO|NO|"]),
            ("views", vec!["hazelcast|public|v|SELECT a FROM m|NONE|NO|NO"]),
        ] {
            let provider = schema.table(table).await.unwrap().unwrap();
            let batches = context.read_table(provider).unwrap().collect().await.unwrap();
            let cell = |batch: &RecordBatch, column: usize, row: usize| {
                let scalar = datafusion::common::ScalarValue::try_from_array(batch.column(column), row).unwrap();
                if scalar.is_null() { String::new() } else { scalar.to_string() }
            };
            let rows: Vec<String> = batches
                .iter()
                .flat_map(|batch| (0..batch.num_rows()).map(move |row| (batch, row)))
                .map(|(batch, row)| {
                    (0..batch.num_columns()).map(|column| cell(batch, column, row)).collect::<Vec<_>>().join("|")
                })
                .collect();
            assert_eq!(rows, expected, "{table}");
        }
        assert!(schema.table("nonsense").await.unwrap().is_none());
    }
}
