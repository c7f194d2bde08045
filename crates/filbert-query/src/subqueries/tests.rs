//! Results of plans with rewritten subqueries.

use datafusion::common::ScalarValue;
use datafusion::prelude::SessionContext;

use super::*;

async fn rows(text: &str) -> Vec<String> {
    let context = SessionContext::new();
    context.sql("CREATE TABLE t (a BIGINT, b BIGINT) AS VALUES (1, 10), (2, 20), (3, 20), (4, NULL)").await.unwrap();
    let plan = unnest(context.state().create_logical_plan(text).await.unwrap()).unwrap();
    let batches = context.execute_logical_plan(plan).await.unwrap().collect().await.unwrap();
    let mut rows = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cell = |column: &arrow_array::ArrayRef| ScalarValue::try_from_array(column, row).unwrap().to_string();
            rows.push(batch.columns().iter().map(cell).collect::<Vec<_>>().join("|"));
        }
    }
    rows
}

#[tokio::test]
async fn a_subquery_may_compare_with_the_outer_row_as_it_likes() {
    for (text, expected) in [
        ("SELECT a, (SELECT count(*) FROM t AS x WHERE x.b < t.b) FROM t ORDER BY a", vec!["1|0", "2|1", "3|1", "4|0"]),
        (
            "SELECT a, (SELECT sum(x.a) + 1 FROM t AS x WHERE x.b = t.b AND x.a <> t.a) AS s FROM t ORDER BY a",
            vec!["1|NULL", "2|4", "3|3", "4|NULL"],
        ),
        ("SELECT a FROM t WHERE (SELECT count(*) FROM t AS x WHERE x.b < t.b) = 1 ORDER BY a", vec!["2", "3"]),
        (
            "SELECT (SELECT count(*) FROM t AS x WHERE x.a < t.a), (SELECT max(y.b) FROM t AS y WHERE y.a > t.a) FROM t ORDER BY a",
            vec!["0|20", "1|20", "2|NULL", "3|NULL"],
        ),
        (
            "SELECT CASE WHEN (SELECT count(*) FROM t AS x WHERE x.a >= t.a) > 2 THEN 'few' ELSE 'many' END FROM t ORDER BY a",
            vec!["few", "few", "many", "many"],
        ),
    ] {
        assert_eq!(rows(text).await, expected, "{text}");
    }
}
