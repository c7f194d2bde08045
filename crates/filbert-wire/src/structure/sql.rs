//! Structures of SQL: query ids, errors, columns, and summaries of jobs.

use super::structure;
use crate::Uuid;

structure! {
    SqlQueryId, since 2.1 { member_id_high: i64, member_id_low: i64, local_id_high: i64, local_id_low: i64 }
    SqlError<'a>, since 2.1 {
        code: i32, message: Option<&'a str>, originating_member_id: Uuid, #[since(2.3)] suggestion: Option<&'a str>,
        #[since(2.7)] cause_stack_trace: Option<&'a str>,
    }
    SqlColumnMetadata<'a>, since 2.1 { name: &'a str, kind: i32, #[since(2.2)] nullable: bool }
    HazelcastJsonValue<'a>, since 2.4 { value: &'a str }
    SqlSummary<'a>, since 2.5 { query: &'a str, unbounded: bool }
    JobAndSqlSummary<'a>, since 2.5 {
        light_job: bool, job_id: i64, execution_id: i64, name_or_id: &'a str, status: i32, submission_time: i64,
        completion_time: i64, failure_text: Option<&'a str>, sql_summary: Option<SqlSummary<'a>>,
        #[since(2.6)] suspension_cause: Option<&'a str>, #[since(2.6)] user_cancelled: bool,
    }
}
