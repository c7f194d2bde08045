//! The memory limits of SQL sessions.

use filbert_grid::MemoryBudget;
use filbert_grid::query::{Dialect, Session};

fn session(bytes_max: usize, budget: &MemoryBudget) -> Session {
    Session::new(Dialect::Postgres, "ann").within(bytes_max, budget)
}

#[test]
fn settings_have_a_limit() {
    let budget = MemoryBudget::new(1 << 30, "max");
    let session = session(100_000, &budget);
    session.set("a.b", Some("x".repeat(60_000))).unwrap();
    let error = session.set("a.c", Some("x".repeat(60_000))).unwrap_err();
    assert_eq!(error.sqlstate(), "53200");
    assert!(error.message.contains("session_bytes_max"), "{error}");
    // A new value of the same setting needs only the difference in memory.
    session.set("a.b", Some("y".repeat(90_000))).unwrap();
    session.set("a.b", None).unwrap();
    assert_eq!(budget.used(), 0, "its room is given back");
    session.set("a.c", Some("x".repeat(60_000))).unwrap();
    session.set("a.c", Some("x".into())).unwrap();
    assert_eq!(budget.used(), 0, "that of what it had more is, too");
    drop(session);
    assert_eq!(budget.used(), 0);
}

#[test]
fn settings_of_all_sessions_share_one_room() {
    let budget = MemoryBudget::new(10 << 20, "max");
    let sessions: Vec<Session> = (0..300).map(|_| session(2 << 20, &budget)).collect();
    let value = "x".repeat(1 << 20);
    let set = sessions.iter().filter(|session| session.set("a.b", Some(value.clone())).is_ok()).count();
    assert_eq!(set, 9);
    // Small settings always fit.
    assert!(sessions.iter().all(|session| session.set("search_path", Some("s".into())).is_ok()));
    drop(sessions);
    assert_eq!(budget.used(), 0);
}

#[test]
fn savepoints_have_a_limit() {
    let budget = MemoryBudget::new(1 << 30, "max");
    let session = session(100_000, &budget);
    session.set("a.b", Some("x".repeat(20_000))).unwrap();
    session.begin(None);
    // Savepoints share equal settings.
    for _ in 0..500 {
        session.save("s".into()).unwrap();
    }
    assert!((0..1_000).any(|_| session.save("s".into()).is_err()));
    session.end(true);
    session.begin(None);
    let set = (0..10).take_while(|n| {
        session.set("a.b", Some(n.to_string().repeat(20_000))).is_ok() && session.save("s".into()).is_ok()
    });
    assert!(set.count() < 6, "each keeps settings of its own");
    session.end(true);
    assert!(session.setting("a.b").unwrap().starts_with('x'));
}

#[test]
fn many_small_settings_count_as_what_they_take() {
    let budget = MemoryBudget::new(1 << 30, "max");
    let session = session(100_000, &budget);
    let set = (0..10_000).take_while(|n| session.set(&format!("a.b{n}"), Some("1".into())).is_ok()).count();
    // Each setting takes about a hundred bytes, less than ten of them for its name and value.
    assert!((500..1_500).contains(&set), "{set} settings in 100 KB");
}

#[test]
fn what_a_transaction_keeps_of_settings_that_are_gone_has_room() {
    let budget = MemoryBudget::new(1 << 30, "max");
    let session = session(1 << 20, &budget);
    session.set("a.b", Some("x".repeat(300_000))).unwrap();
    session.begin(None);
    session.reset();
    assert!(budget.used() > 300_000, "they come back with a rollback");
    session.end(false);
    session.set("a.b", Some("x".repeat(20_000))).unwrap();
    session.begin(None);
    let set = |n: usize| {
        session.set(&format!("a.b{n}"), Some("x".repeat(100_000))).and_then(|()| {
            // The previous value is stored until the transaction ends.
            session.set_local(&format!("a.b{n}"), Some(String::new()))
        })
    };
    assert!((0..100).take_while(|n| set(*n).is_ok()).count() < 11);
    session.end(true);
    session.reset();
    assert_eq!(budget.used(), 0);
}
