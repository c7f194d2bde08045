//! The data that loads need in a member, and the removal of the data that they leave.

use anyhow::{Context, Result};
use filbert_wire::Message;
use filbert_wire::table::client;

use crate::target::Target;
use crate::wire::grid;

/// The number of rows of the table `crowd`, which all loads use. Some 40 MB.
pub(crate) const CROWD: u32 = 200_000;

/// The name prefix of the tables, views and maps of loads.
pub(crate) const PREFIX: &str = "siege";

/// Creates the table `crowd`: unordered whole numbers, a thousand groups, texts of fifty
/// characters.
pub(crate) async fn furnish(target: Target) -> Result<()> {
    let mut session = target.session().await?;
    session.done("CREATE TABLE crowd (id INT PRIMARY KEY, a INT, g INT, t TEXT)").await?;
    let fill = format!(
        "INSERT INTO crowd SELECT i, (i * 7919) % 1000003, i % 1000, lpad(i::text, 50, 'x') \
         FROM generate_series(1, {CROWD}) AS s(i)"
    );
    session.done(&fill).await.context("filling the table of all loads")?;
    Ok(())
}

/// Drops views and tables, then maps.
pub(crate) async fn remove_what_loads_made(target: Target) -> Result<()> {
    let mut session = target.session().await?;
    for (kind, word) in [("VIEW", "VIEW"), ("BASE TABLE", "TABLE")] {
        let names = texts(
            &mut session,
            &format!(
                "SELECT table_name FROM information_schema.tables \
             WHERE table_schema = 'public' AND table_type = '{kind}' AND table_name LIKE '{PREFIX}%' ORDER BY 1 DESC"
            ),
        )
        .await?;
        for name in names {
            session.done(&format!("DROP {word} IF EXISTS \"{name}\"")).await?;
        }
    }
    let mut connection = target.raw_client().await?;
    let answer = connection.call(&client::get_distributed_objects::Request {}).await?;
    let message = Message::parse(&answer)?;
    for object in message.decode::<client::get_distributed_objects::Response<'_>>()?.response {
        if object.name.starts_with(PREFIX) {
            let request = client::destroy_proxy::Request { name: object.name, service_name: grid::MAP_SERVICE };
            connection.call(&request).await?;
        }
    }
    Ok(())
}

/// Returns the texts of a query with one column.
async fn texts(session: &mut crate::wire::postgres::Session, text: &str) -> Result<Vec<String>> {
    session.send(&crate::wire::postgres::query(text)).await?;
    let mut texts = Vec::new();
    loop {
        match session.next().await? {
            b'Z' => return Ok(texts),
            b'D' => texts.push(String::from_utf8_lossy(session.body().get(6..).unwrap_or_default()).into_owned()),
            b'E' => anyhow::bail!("{:.80}: {}", text, String::from_utf8_lossy(session.body())),
            _ => {}
        }
    }
}
