//! Replies to statements: counts, pages, errors.

use filbert_grid::query::{Page, SqlError};
use filbert_wire::{
    CorrelationId, MessageId, Response, Uuid,
    codec::{Field, Fixed},
    frame::{Writer, flags},
    structure::{SqlColumnMetadata, SqlError as WireSqlError},
    table::sql::{execute, fetch},
};

use crate::{
    cursors::Rows,
    sql_rows::{put_page, result_type},
};

/// The request that is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyKind {
    /// A statement. Its first page comes with the columns.
    Execute,
    /// A request for another page.
    Fetch,
}

/// A reply under construction.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) kind: ReplyKind,
    pub(crate) correlation: CorrelationId,
    /// The member that is named in errors.
    pub(crate) member: Uuid,
    /// Bytes of replies that may wait for the client.
    pub(crate) bytes_max: usize,
}

/// The number of changed rows in a response that contains rows.
const ROWS: i64 = -1;
/// The index of the parameter that determines the best partition for the statement: not reported.
const NO_PARTITION_ARGUMENT: i32 = -1;

impl Reply {
    /// Appends the number of changed rows.
    pub(crate) fn count(&self, count: u64, out: &mut Vec<u8>) {
        execute::Response {
            update_count: i64::try_from(count).unwrap_or(i64::MAX),
            partition_argument_index: NO_PARTITION_ARGUMENT,
            ..execute::Response::default()
        }
        .encode(self.correlation, out);
    }

    /// Appends a page. Appends nothing on failure.
    ///
    /// # Errors
    /// The columns of the page differ from those of the rows.
    pub(crate) fn page(&self, rows: &Rows, page: &Page, out: &mut Vec<u8>) -> Result<(), SqlError> {
        let start = out.len();
        let mut writer = match self.kind {
            ReplyKind::Execute => {
                let mut writer = self.begin(execute::RESPONSE_ID, out, |out| {
                    ROWS.put(out);
                    rows.is_infinite.put(out);
                    NO_PARTITION_ARGUMENT.put(out);
                });
                writer.begin();
                for (column, array) in rows.columns.iter().zip(page.rows.columns()) {
                    let kind = result_type(column, array);
                    SqlColumnMetadata { name: &column.name, kind, nullable: column.nullable }.put_variable(&mut writer);
                }
                writer.end();
                writer
            }
            ReplyKind::Fetch => self.begin(fetch::RESPONSE_ID, out, |_| ()),
        };
        let put = put_page(&mut writer, &rows.columns, &page.rows, page.last);
        // There is no error.
        writer.null();
        writer.finish();
        if put.is_err() {
            out.truncate(start);
        }
        put
    }

    fn begin<'o>(&self, response: MessageId, out: &'o mut Vec<u8>, fixed: impl FnOnce(&mut Vec<u8>)) -> Writer<'o> {
        let mut writer = Writer::new(out);
        writer.frame_with(flags::UNFRAGMENTED, |out| {
            out.extend_from_slice(&response.0.to_le_bytes());
            out.extend_from_slice(&self.correlation.0.to_le_bytes());
            // There are no backups to wait for.
            out.push(0);
            fixed(out);
        });
        writer
    }

    /// Appends an error.
    #[cold]
    pub(crate) fn error(&self, error: &SqlError, out: &mut Vec<u8>) {
        let error = Some(WireSqlError {
            code: error.code as i32,
            message: Some(&error.message),
            originating_member_id: self.member,
            suggestion: error.suggestion.as_deref(),
            cause_stack_trace: None,
        });
        match self.kind {
            ReplyKind::Execute => execute::Response {
                update_count: ROWS,
                error,
                partition_argument_index: NO_PARTITION_ARGUMENT,
                ..execute::Response::default()
            }
            .encode(self.correlation, out),
            ReplyKind::Fetch => fetch::Response { error, ..fetch::Response::default() }.encode(self.correlation, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatch, StringViewArray};
    use arrow_schema::{DataType, Field as ArrowField, Schema};
    use filbert_data::FieldType;
    use filbert_grid::query::{ColumnMeta, Cursor, PageReply, SqlErrorCode};
    use filbert_wire::{Message, sql_page::SqlColumn};

    use super::*;

    struct Nothing(Arc<[ColumnMeta]>);

    impl Cursor for Nothing {
        fn columns(&self) -> &Arc<[ColumnMeta]> {
            &self.0
        }

        fn page_now(&mut self, _: usize) -> Option<Result<Page, SqlError>> {
            None
        }

        fn page(self: Box<Self>, _: usize, _: PageReply) {}
    }

    fn rows() -> (Rows, Page) {
        let column = |name: &str, field_type| ColumnMeta {
            name: name.to_owned(),
            field_type,
            nullable: true,
            pg_type: None,
            length: None,
        };
        let columns = [column("id", FieldType::BigInt), column("name", FieldType::Varchar)];
        let schema = Schema::new(vec![
            ArrowField::new("id", DataType::Int64, true),
            ArrowField::new("name", DataType::Utf8View, true),
        ]);
        let ids = Int64Array::from(vec![Some(1), None]);
        let names = StringViewArray::from(vec![None, Some("a name that is not short")]);
        let rows = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(ids), Arc::new(names)]).unwrap();
        (Rows::new(Box::new(Nothing(Arc::from(columns)))), Page { rows, last: false })
    }

    fn reply(kind: ReplyKind) -> Reply {
        Reply { kind, correlation: CorrelationId(5), member: Uuid::from_u128(7), bytes_max: 100 }
    }

    #[test]
    fn a_page_decodes_as_the_response_that_it_stands_for() {
        let (rows, page) = rows();
        let mut out = Vec::new();
        reply(ReplyKind::Execute).page(&rows, &page, &mut out).unwrap();
        let response: execute::Response<'_> = Message::parse(&out).unwrap().decode().unwrap();
        assert_eq!(response.update_count, -1);
        assert_eq!(response.partition_argument_index, -1);
        assert!(response.error.is_none() && !response.is_infinite_rows);
        let metadata = response.row_metadata.unwrap();
        assert_eq!(metadata[1], SqlColumnMetadata { name: "name", kind: SqlColumn::VARCHAR, nullable: true });
        let page_read = response.row_page.unwrap();
        assert!(!page_read.last);
        assert_eq!(page_read.columns[0], SqlColumn::BigInt(vec![Some(1), None]));
        assert_eq!(page_read.columns[1], SqlColumn::Varchar(vec![None, Some("a name that is not short")]));

        let mut out = Vec::new();
        reply(ReplyKind::Fetch).page(&rows, &page, &mut out).unwrap();
        let response: fetch::Response<'_> = Message::parse(&out).unwrap().decode().unwrap();
        assert_eq!(response.row_page.unwrap(), page_read);
    }

    #[test]
    fn a_page_of_other_columns_is_an_error_and_appends_nothing() {
        let (rows, page) = rows();
        let page = Page { rows: page.rows.project(&[1, 0]).unwrap(), last: true };
        let mut out = b"before".to_vec();
        let error = reply(ReplyKind::Execute).page(&rows, &page, &mut out).unwrap_err();
        assert_eq!(error.code, SqlErrorCode::Generic);
        assert_eq!(out, b"before");
    }
}
