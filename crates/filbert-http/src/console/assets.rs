//! The files of the console, embedded in the program.
//!
//! Files are served with an ETag of their contents, and browsers must revalidate them each time.
//! This costs an empty response, and a browser never mixes files of two versions of the program.

use std::sync::LazyLock;

use axum::http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};

/// The content security policy: the page may load data from this program and from nowhere else.
/// Inline styles and scripts are refused, so that no displayed value can become code.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

struct Asset {
    name: &'static str,
    content_type: &'static str,
    bytes: &'static [u8],
}

macro_rules! asset {
    ($name:literal, $content_type:expr) => {
        Asset { name: $name, content_type: $content_type, bytes: include_bytes!(concat!("../../assets/", $name)) }
    };
}

static PAGE: Asset = asset!("console.html", "text/html; charset=utf-8");

static ASSETS: [Asset; 21] = [
    asset!("icon.svg", "image/svg+xml"),
    asset!("base.css", STYLE),
    asset!("views.css", STYLE),
    asset!("sql.css", STYLE),
    asset!("chart.js", SCRIPT),
    asset!("cluster.js", SCRIPT),
    asset!("complete.js", SCRIPT),
    asset!("console.js", SCRIPT),
    asset!("data.js", SCRIPT),
    asset!("dom.js", SCRIPT),
    asset!("editor.js", SCRIPT),
    asset!("format.js", SCRIPT),
    asset!("grid.js", SCRIPT),
    asset!("overview.js", SCRIPT),
    asset!("plan.js", SCRIPT),
    asset!("request.js", SCRIPT),
    asset!("slow.js", SCRIPT),
    asset!("sql.js", SCRIPT),
    asset!("status.js", SCRIPT),
    asset!("theme.js", SCRIPT),
    asset!("tokens.js", SCRIPT),
];

/// The ETags of the page and of the other files, in order.
static TAGS: LazyLock<Vec<String>> =
    LazyLock::new(|| std::iter::once(&PAGE).chain(&ASSETS).map(|asset| tag_of(asset.bytes)).collect());

/// FNV-1a, 64 bits. Files of different versions have different hashes. Protection against
/// deliberate collisions is not needed.
fn tag_of(bytes: &[u8]) -> String {
    let hash = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("\"{hash:016x}\"")
}

/// Whether the client is a browser that wants a page. Other clients want JSON.
pub(crate) fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    accepted.split(',').any(|kind| kind.split(';').next().is_some_and(|kind| kind.trim() == "text/html"))
}

/// The page.
pub(crate) fn page(headers: &HeaderMap) -> Response {
    answer(&PAGE, TAGS.first(), headers)
}

/// Another file of the console, by name.
pub(super) fn asset(name: &str, headers: &HeaderMap) -> Response {
    match ASSETS.iter().zip(TAGS.iter().skip(1)).find(|(asset, _)| asset.name == name) {
        Some((asset, tag)) => answer(asset, Some(tag), headers),
        None => (StatusCode::NOT_FOUND, format!("the console has no file {name:?}")).into_response(),
    }
}

/// The names of the other files.
#[cfg(test)]
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    ASSETS.iter().map(|asset| asset.name)
}

fn answer(asset: &'static Asset, tag: Option<&String>, headers: &HeaderMap) -> Response {
    let tag = tag.map_or("", String::as_str);
    let common: [(HeaderName, &str); 6] = [
        (ETAG, tag),
        (CACHE_CONTROL, "no-cache"),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
    ];
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !tag.is_empty() && known.split(',').any(|known| known.trim().trim_start_matches("W/") == tag) {
        return (StatusCode::NOT_MODIFIED, common).into_response();
    }
    (common, [(CONTENT_TYPE, asset.content_type)], asset.bytes).into_response()
}
