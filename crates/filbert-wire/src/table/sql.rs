//! `Sql`: statements, and the pages of their results.

use super::service;

service! {
    Sql = 0x21;

    execute_reserved "execute_reserved" = 0x01, since 2.1, retryable: false, partition: None {
        request<'a> { sql: &'a str, parameters: Vec<Data<'a>>, timeout_millis: i64, cursor_buffer_size: i32 }
        response<'a> {
            query_id: Option<SqlQueryId>, row_metadata: Option<Vec<SqlColumnMetadata<'a>>>,
            row_page: Option<Vec<Vec<Option<Data<'a>>>>>, row_page_last: bool, update_count: i64,
            error: Option<SqlError<'a>>,
        }
    }

    fetch_reserved "fetch_reserved" = 0x02, since 2.1, retryable: false, partition: None {
        request { query_id: SqlQueryId, cursor_buffer_size: i32 }
        response<'a> {
            row_page: Option<Vec<Vec<Option<Data<'a>>>>>, row_page_last: bool, error: Option<SqlError<'a>>,
        }
    }

    close = 0x03, since 2.1, retryable: false, partition: None {
        request { query_id: SqlQueryId }
        response {}
    }

    execute = 0x04, since 2.2, retryable: false, partition: None {
        request<'a> {
            sql: &'a str, parameters: Vec<Option<Data<'a>>>, timeout_millis: i64, cursor_buffer_size: i32,
            schema: Option<&'a str>, expected_result_type: u8, query_id: SqlQueryId,
            #[since(2.3)] skip_update_statistics: bool,
        }
        response<'a> {
            row_metadata: Option<Vec<SqlColumnMetadata<'a>>>, row_page: Option<SqlPage<'a>>, update_count: i64,
            error: Option<SqlError<'a>>, #[since(2.5)] is_infinite_rows: bool,
            #[since(2.6)] partition_argument_index: i32,
        }
    }

    fetch = 0x05, since 2.2, retryable: false, partition: None {
        request { query_id: SqlQueryId, cursor_buffer_size: i32 }
        response<'a> { row_page: Option<SqlPage<'a>>, error: Option<SqlError<'a>> }
    }

    mapping_ddl = 0x06, since 2.3, retryable: true, partition: None {
        request<'a> { name: &'a str }
        response<'a> { sql: Option<&'a str> }
    }
}
