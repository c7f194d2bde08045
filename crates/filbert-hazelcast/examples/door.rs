//! A member with only the Hazelcast front door, for trying clients by hand: `door [address]`. Maps
//! named `journal...` keep an event journal.

#![allow(clippy::print_stdout, reason = "a program")]

use std::sync::Arc;

use filbert_grid::{Environment, EventJournalConfig, Grid, GridConfig, MapConfig, SystemClock};
use filbert_hazelcast::{Door, DoorConfig};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut config = DoorConfig::default();
    if let Some(address) = std::env::args().nth(1) {
        config.listen = address.parse()?;
    }
    let environment = Environment { clock: Arc::new(SystemClock::new()), random_seed: 1 };
    let mut settings = GridConfig::default();
    let journal = MapConfig { event_journal: Some(EventJournalConfig::default()), ..MapConfig::default() };
    settings.maps.insert("journal*", journal);
    let grid = Grid::new(settings, environment)?;
    let door = Door::bind(grid.clone(), config).await?;
    println!("listening on {}", door.local_addr());
    std::thread::spawn(move || {
        loop {
            let now = grid.now();
            let wait_ms = grid.run_expiry().since(now).clamp(1, 100);
            std::thread::sleep(std::time::Duration::from_millis(wait_ms.cast_unsigned()));
        }
    });
    door.run(async {
        // Ends with an interrupt from the terminal.
        let _ = tokio::signal::ctrl_c().await;
    })
    .await;
    Ok(())
}
