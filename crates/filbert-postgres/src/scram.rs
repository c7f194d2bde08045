//! The server side of SCRAM-SHA-256 (RFC 5802 and 7677), without channel binding.
//!
//! ```text
//!  client                                     server
//!  n,,n=,r=NONCE                       ──►
//!                                      ◄──    r=NONCE+OURS,s=SALT,i=ITERATIONS
//!  c=biws,r=NONCE+OURS,p=PROOF         ──►
//!                                      ◄──    v=SIGNATURE
//! ```
//!
//! An unknown user gets the same challenge as a known one, with a salt that is constant for the
//! name, and fails at the same step. Passwords are used unchanged: a password with characters
//! outside of ASCII must already have the form that SASLprep returns. Keyboards nearly always
//! produce this form.

use std::collections::HashMap;

use base64::{Engine, prelude::BASE64_STANDARD};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use uuid::Uuid;

use crate::config::{PostgresSecret, PostgresUser};

/// The name of the mechanism.
pub(crate) const MECHANISM: &str = "SCRAM-SHA-256";
/// The number of hash iterations for a password, as in PostgreSQL.
const ITERATIONS: u32 = 4096;
const SALT_BYTES: usize = 16;
type Key = [u8; 32];

/// The data that is stored instead of a password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Verifier {
    iterations: u32,
    salt: Vec<u8>,
    stored_key: Key,
    server_key: Key,
}

fn hmac(key: &[u8], parts: &[&[u8]]) -> Key {
    // HMAC accepts keys of any length.
    let Ok(mut mac) = <Hmac<Sha256> as Mac>::new_from_slice(key) else { return Key::default() };
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

fn random() -> [u8; SALT_BYTES] {
    *Uuid::new_v4().as_bytes()
}

impl Verifier {
    fn of_password(password: &str, salt: &[u8]) -> Verifier {
        let mut salted = Key::default();
        pbkdf2::pbkdf2_hmac::<Sha256>(password.as_bytes(), salt, ITERATIONS, &mut salted);
        let stored_key = Sha256::digest(hmac(&salted, &[b"Client Key"])).into();
        Verifier {
            iterations: ITERATIONS,
            salt: salt.to_vec(),
            stored_key,
            server_key: hmac(&salted, &[b"Server Key"]),
        }
    }

    /// Parses `SCRAM-SHA-256$iterations:salt$stored key:server key`.
    fn parse(text: &str) -> Option<Verifier> {
        let (head, keys) = text.strip_prefix("SCRAM-SHA-256$")?.split_once('$')?;
        let (iterations, salt) = head.split_once(':')?;
        let (stored, server) = keys.split_once(':')?;
        let key = |text: &str| Key::try_from(BASE64_STANDARD.decode(text).ok()?).ok();
        Some(Verifier {
            iterations: iterations.parse().ok().filter(|iterations| *iterations > 0)?,
            salt: BASE64_STANDARD.decode(salt).ok().filter(|salt| !salt.is_empty())?,
            stored_key: key(stored)?,
            server_key: key(server)?,
        })
    }
}

/// A verifier in the configuration is malformed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the verifier of user {user:?} cannot be read; SCRAM-SHA-256$iterations:salt$stored key:server key is expected"
)]
pub struct BrokenVerifier {
    /// The user with the malformed verifier.
    pub user: String,
}

/// The users that may connect.
#[derive(Debug)]
pub(crate) struct Users {
    verifiers: HashMap<String, Verifier>,
    /// The secret from which the salts of unknown users are derived.
    secret: [u8; SALT_BYTES],
}

impl Users {
    pub(crate) fn new(users: &[PostgresUser]) -> Result<Users, BrokenVerifier> {
        let verifier = |user: &PostgresUser| match &user.secret {
            PostgresSecret::Password(password) => Ok(Verifier::of_password(password, &random())),
            PostgresSecret::Verifier(text) => {
                Verifier::parse(text).ok_or_else(|| BrokenVerifier { user: user.name.clone() })
            }
        };
        let verifiers = users.iter().map(|user| Ok((user.name.clone(), verifier(user)?)));
        Ok(Users { verifiers: verifiers.collect::<Result<_, _>>()?, secret: random() })
    }

    /// Whether there are no users, so that every client may connect.
    pub(crate) fn is_empty(&self) -> bool {
        self.verifiers.is_empty()
    }

    fn find(&self, name: &str) -> (Verifier, bool) {
        match self.verifiers.get(name) {
            Some(verifier) => (verifier.clone(), true),
            None => {
                let salt = hmac(&self.secret, &[name.as_bytes()]);
                let salt = salt.first_chunk::<SALT_BYTES>().map(|salt| salt.to_vec()).unwrap_or_default();
                let (stored_key, server_key) = (salt_key(&salt), salt_key(&self.secret));
                (Verifier { iterations: ITERATIONS, salt, stored_key, server_key }, false)
            }
        }
    }
}

fn salt_key(bytes: &[u8]) -> Key {
    Sha256::digest(bytes).into()
}

/// The reason why a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The messages do not follow SCRAM. Holds the description of the error.
    Malformed(&'static str),
    /// The user or the password is wrong. The client does not learn which one.
    Wrong,
}

/// An exchange that waits for the client's proof.
#[derive(Debug)]
pub(crate) struct Exchange {
    verifier: Verifier,
    is_known: bool,
    /// The client's header in base64, `biws` in most cases.
    binding: String,
    nonce: String,
    /// The part of the signed text that is known so far.
    first_messages: String,
}

impl Exchange {
    /// Reads the client's first message. [`Exchange::challenge`] is the reply to it.
    pub(crate) fn begin(users: &Users, user: &str, message: &str) -> Result<Exchange, Refusal> {
        Exchange::begin_with(users, user, message, &BASE64_STANDARD.encode([random(), random()].concat()))
    }

    fn begin_with(users: &Users, user: &str, message: &str, ours: &str) -> Result<Exchange, Refusal> {
        let malformed = Refusal::Malformed;
        let mut parts = message.splitn(3, ',');
        let (flag, identity, bare) = (parts.next(), parts.next(), parts.next());
        let (Some(flag), Some(identity), Some(bare)) = (flag, identity, bare) else {
            return Err(malformed("the first message has fewer than three parts"));
        };
        match flag {
            "n" | "y" => {}
            _ => return Err(malformed("channel binding is asked for and was not offered")),
        }
        if !identity.is_empty() {
            return Err(malformed("an authorization identity is given"));
        }
        // The user name in this message is ignored, as in PostgreSQL. The name in the startup
        // message counts.
        let mut attributes = bare.split(',');
        let (name, theirs) = (attributes.next(), attributes.next());
        let theirs = theirs.and_then(|nonce| nonce.strip_prefix("r=")).filter(|nonce| !nonce.is_empty());
        let (Some(_), Some(theirs)) = (name.filter(|name| name.starts_with("n=")), theirs) else {
            return Err(malformed("the first message has no user or no nonce"));
        };
        let (verifier, is_known) = users.find(user);
        let nonce = format!("{theirs}{ours}");
        let mut exchange = Exchange {
            verifier,
            is_known,
            binding: BASE64_STANDARD.encode(format!("{flag},{identity},")),
            nonce,
            first_messages: String::new(),
        };
        exchange.first_messages = format!("{bare},{}", exchange.challenge());
        Ok(exchange)
    }

    /// The challenge for the client's proof.
    pub(crate) fn challenge(&self) -> String {
        let Verifier { iterations, salt, .. } = &self.verifier;
        format!("r={},s={},i={iterations}", self.nonce, BASE64_STANDARD.encode(salt))
    }

    /// Checks the client's proof. Returns the server's signature if the proof is right.
    pub(crate) fn finish(self, message: &str) -> Result<String, Refusal> {
        let malformed = Refusal::Malformed;
        let (signed, proof) = message.rsplit_once(",p=").ok_or(malformed("the last message has no proof"))?;
        let proof = BASE64_STANDARD.decode(proof).ok().and_then(|proof| Key::try_from(proof).ok());
        let proof = proof.ok_or(malformed("the proof is not 32 bytes in base64"))?;
        let expected = format!("c={},r={}", self.binding, self.nonce);
        if signed != expected && !signed.starts_with(&format!("{expected},")) {
            return Err(malformed("the last message is of another exchange"));
        }
        let signs = [self.first_messages.as_bytes(), b",", signed.as_bytes()];
        let signature = hmac(&self.verifier.stored_key, &signs);
        let mut client_key = proof;
        client_key.iter_mut().zip(signature).for_each(|(byte, signed)| *byte ^= signed);
        let hashed: Key = Sha256::digest(client_key).into();
        let is_right = bool::from(hashed.ct_eq(&self.verifier.stored_key));
        if !(is_right & self.is_known) {
            return Err(Refusal::Wrong);
        }
        Ok(format!("v={}", BASE64_STANDARD.encode(hmac(&self.verifier.server_key, &signs))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exchange of RFC 7677, section 3.
    #[test]
    fn the_exchange_of_the_rfc_succeeds() {
        let salt = BASE64_STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifiers = HashMap::from([("user".to_owned(), Verifier::of_password("pencil", &salt))]);
        let users = Users { verifiers, secret: random() };
        let begin = |user| {
            let ours = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
            Exchange::begin_with(&users, user, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO", ours).unwrap()
        };
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        assert_eq!(begin("user").challenge(), format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"));
        let last = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        assert_eq!(begin("user").finish(&last).unwrap(), "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        assert_eq!(begin("other").finish(&last), Err(Refusal::Wrong));
        let wrong = last.replace("p=dHzb", "p=dHzc");
        assert_eq!(begin("user").finish(&wrong), Err(Refusal::Wrong));
        assert!(matches!(begin("user").finish("c=biws,r=x,p="), Err(Refusal::Malformed(_))));
        let replayed = last.replace("rOpr", "rOps");
        assert!(matches!(begin("user").finish(&replayed), Err(Refusal::Malformed(_))));
    }

    #[test]
    fn a_verifier_is_as_good_as_its_password() {
        let verifier = Verifier::of_password("pencil", b"0123456789abcdef");
        let text = format!(
            "SCRAM-SHA-256$4096:{}${}:{}",
            BASE64_STANDARD.encode(&verifier.salt),
            BASE64_STANDARD.encode(verifier.stored_key),
            BASE64_STANDARD.encode(verifier.server_key)
        );
        assert_eq!(Verifier::parse(&text), Some(verifier));
        for broken in ["", "md5abc", "SCRAM-SHA-256$0:YQ==$YQ==:YQ==", "SCRAM-SHA-256$4096:$:"] {
            assert_eq!(Verifier::parse(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_user_that_does_not_exist_looks_like_one_that_does() {
        let users =
            Users::new(&[PostgresUser { name: "ann".into(), secret: PostgresSecret::Password("a".into()) }]).unwrap();
        let salt = |name: &str| Exchange::begin_with(&users, name, "n,,n=,r=x", "y").unwrap().challenge();
        assert_eq!(salt("bob"), salt("bob"));
        assert_ne!(salt("bob"), salt("eve"));
        assert_eq!(salt("bob").len(), salt("ann").len());
    }

    #[test]
    fn messages_of_other_exchanges_are_refused() {
        let users = Users::new(&[]).unwrap();
        for message in ["", "n", "n,", "p=tls-unique,,n=,r=x", "n,a=ann,n=,r=x", "n,,r=x", "n,,n=", "n,,n=,r="] {
            assert!(matches!(Exchange::begin(&users, "ann", message), Err(Refusal::Malformed(_))), "{message:?}");
        }
    }
}
