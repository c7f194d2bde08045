//! Executes the attack of a load and reports its result.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use tokio::time::{Instant, timeout};

use crate::load::{Attack, Expect, HOLD, Load, States};
use crate::target::Target;
use crate::wire::postgres::Answer;

/// The SQLSTATE of a cancelled statement.
const CANCELLED: &str = "57014";

/// The result of an attack.
pub(crate) struct Aftermath {
    /// The member's reply, as a short text.
    pub(crate) told: String,
    /// The reason why the reply is unexpected, if it is.
    pub(crate) wrong: Option<String>,
    /// The time from which the member has no reason to work any more: the last reply arrived, the
    /// statement was cancelled, or the connections were closed.
    pub(crate) over: Instant,
}

/// Executes the attack. An attack that takes longer than `patience` hangs, which is always a
/// failure.
pub(crate) async fn run(load: &Load, target: Target, patience: Duration) -> Aftermath {
    let mut over = None;
    let result = match &load.attack {
        Attack::Sql(text, expect) => {
            let text = text();
            timeout(patience, statement(target, &text, *expect, &mut over)).await
        }
        Attack::Does(attack) => timeout(patience, attack(target)).await,
    };
    let (told, wrong) = match result {
        Ok(Ok(told)) => (told, None),
        Ok(Err(error)) => ("?".to_owned(), Some(format!("{error:#}"))),
        Err(_) => ("nothing".to_owned(), Some(format!("was not over after {patience:?}"))),
    };
    Aftermath { told, wrong, over: over.unwrap_or_else(Instant::now) }
}

/// Executes a statement and ends it if `expect` requires that. `over` is set to the time of the
/// request to end.
async fn statement(target: Target, text: &str, expect: Expect, over: &mut Option<Instant>) -> Result<String> {
    let mut session = target.session().await?;
    let begun = Instant::now();
    let sent = crate::wire::postgres::query(text);
    session.send(&sent).await?;
    match expect {
        Expect::Refused(states) => {
            let answer = session.answer().await?;
            judge(&answer, states, false)?;
            Ok(format!("{answer} in {} ms", begun.elapsed().as_millis()))
        }
        Expect::Ends(states) => {
            let answer = session.answer().await?;
            judge(&answer, states, true)?;
            Ok(format!("{answer} in {} ms", begun.elapsed().as_millis()))
        }
        Expect::Cancelled(states) => {
            let (cancel, mut answer) = (session.canceller(), pin!(session.answer()));
            if let Ok(answer) = timeout(HOLD, &mut answer).await {
                return refused_early(&answer?, states, begun);
            }
            let asked = Instant::now();
            *over = Some(asked);
            cancel.cancel().await?;
            let answer = answer.await?;
            ensure!(answer.state() == Some(CANCELLED), "was cancelled, and says {answer:?}");
            Ok(format!("{answer} {} ms after the cancel", asked.elapsed().as_millis()))
        }
        Expect::Closed(states) => {
            if let Ok(answer) = timeout(HOLD, session.answer()).await {
                return refused_early(&answer?, states, begun);
            }
            drop(session);
            *over = Some(Instant::now());
            Ok("closed".to_owned())
        }
    }
}

fn refused_early(answer: &Answer, states: States, begun: Instant) -> Result<String> {
    judge(answer, states, false)?;
    Ok(format!("{answer} in {} ms, by itself", begun.elapsed().as_millis()))
}

/// Checks that the reply is one of the expected replies.
fn judge(answer: &Answer, states: States, may_be_answered: bool) -> Result<()> {
    match answer {
        Answer::Rows(_) if may_be_answered => Ok(()),
        Answer::Refused(state, _) if states.contains(&state.as_str()) => Ok(()),
        Answer::Rows(rows) => bail!("was answered with {rows} rows, one of {states:?} is expected"),
        Answer::Refused(state, text) => bail!("was refused with {state} ({text}), one of {states:?} is expected"),
    }
}
