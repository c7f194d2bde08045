//! The console's responses, without a browser.

use std::collections::HashSet;
use std::time::Duration;

use axum::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue};
use filbert_grid::metrics::OperationKind;
use filbert_grid::{Caller, Change, Environment, Expiry, GridConfig, PutMode, SystemClock};
use http_body_util::BodyExt;

use super::latency::{Durations, Percentiles};
use super::*;

fn grid() -> Arc<Grid> {
    Grid::new(GridConfig::default(), Environment { clock: Arc::new(SystemClock::new()), random_seed: 1 }).unwrap()
}

async fn body(response: Response) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn the_page_names_only_files_that_are_there() {
    let page = page(&HeaderMap::new());
    assert!(page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().contains("default-src 'none'"));
    let text = body(page).await;
    let mut open = vec![text];
    let mut seen = HashSet::new();
    while let Some(text) = open.pop() {
        let named = text.split(['"', '\'']).filter_map(|part| {
            part.strip_prefix("/_filbert/assets/").or_else(|| part.strip_prefix("./")).filter(|name| name.contains('.'))
        });
        for name in named.map(str::to_owned).collect::<Vec<_>>() {
            if seen.insert(name.clone()) {
                let asset = assets::asset(&name, &HeaderMap::new());
                assert_eq!(asset.status(), StatusCode::OK, "{name}");
                open.push(body(asset).await);
            }
        }
    }
    assert_eq!(
        seen.len(),
        assets::names().count(),
        "files that nothing names: {:?}",
        assets::names().collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_file_that_the_browser_has_is_sent_once() {
    let first = page(&HeaderMap::new());
    let mut headers = HeaderMap::new();
    headers.insert(IF_NONE_MATCH, first.headers()[ETAG].clone());
    let repeated = page(&headers);
    assert_eq!(repeated.status(), StatusCode::NOT_MODIFIED);
    assert!(!repeated.headers().contains_key(CONTENT_TYPE));
    assert_eq!(body(repeated).await, "");
    assert_eq!(assets::asset("../lib.rs", &HeaderMap::new()).status(), StatusCode::NOT_FOUND);
}

#[test]
fn browsers_want_the_page_and_tools_do_not() {
    let accepts = |value: &'static str| wants_page(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(value))]));
    assert!(accepts("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
    assert!(!accepts("*/*"));
    assert!(!accepts("application/json"));
    assert!(!wants_page(&HeaderMap::new()));
}

#[tokio::test]
async fn status_and_details_include_a_map() {
    let grid = grid();
    let map = grid.map("capitals").unwrap();
    let key = [0, 0, 0, 1, 0, 0, 0, 9];
    let change = Change::Put { key: &key, value: &key, expiry: Expiry::default(), mode: PutMode::Set };
    map.change(map.partition_of(&key), Caller::default(), change, |_| ()).unwrap();
    let sampler = Sampler::start(&grid);
    let status = serde_json::to_value(status::status(&grid, &Sources::default(), &sampler, 0)).unwrap();
    assert_eq!(status["maps"][0]["name"], "capitals");
    assert_eq!(status["maps"][0]["puts"], 1);
    assert_eq!(status["samples"][0]["entries"], 1);
    assert_eq!(status["members"][0]["memory_bytes_max"], serde_json::Value::Null);
    assert_eq!(status["warnings"][0]["title"], "There is no memory limit");
    let details = serde_json::to_value(maps::details(&grid, "capitals")).unwrap();
    assert_eq!((&details["entries"], &details["settings"][1]["value"]), (&1.into(), &"never".into()));
    assert!(maps::details(&grid, "nowhere").is_none() && grid.map_names() == ["capitals"], "looking makes no map");
}

#[test]
fn counters_go_on_when_a_map_is_dropped_and_made_anew() {
    let counters = |gets| maps::Counters { gets, ..maps::Counters::default() };
    let mut total = counters(0);
    total.add_since(&counters(10), &counters(0));
    total.add_since(&counters(3), &counters(10));
    assert_eq!(total, counters(13));
}

#[test]
fn percentiles_are_of_what_came_since_the_sample_before() {
    let grid = grid();
    let observe = |micros, times| {
        (0..times).for_each(|_| grid.metrics().observe(OperationKind::Get, Duration::from_micros(micros)))
    };
    observe(1_000_000, 100);
    let before = Durations::of_operations(&grid);
    observe(100, 98);
    observe(5_000, 2);
    // Statements do not count as operations.
    grid.metrics().observe(OperationKind::Sql, Duration::from_secs(1));
    let now = Durations::of_operations(&grid);
    let took = now.since(&before);
    let within = |percentile: Option<f64>, micros: f64| (micros..=micros * 1.25).contains(&percentile.unwrap());
    assert!(within(took.p50_us, 100.0) && within(took.p99_us, 5_000.0), "{took:?}");
    assert_eq!(now.since(&now), Percentiles::default());
}
