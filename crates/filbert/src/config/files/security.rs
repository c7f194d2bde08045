//! `security` of the file: the credentials that clients must show.
//!
//! A realm defines how to authenticate. `client-authentication` names the realm for clients. As in
//! Hazelcast, a realm with an identity and no authentication requires that same identity from
//! clients, and without a realm clients need only the cluster name. An unsupported method is an
//! error even without `--strict`: it is better not to start than to serve everyone when
//! authentication was requested.

use filbert_hazelcast::Authentication;

use super::error::Problem;
use super::setting::{Kind, Setting};
use super::tree::{Node, Value};
use super::walk::{Path, Walk};

/// The credentials that a client must show in addition to the cluster name.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) enum Credentials {
    /// No further credentials.
    #[default]
    None,
    /// The name and password of one of these users.
    Users(Vec<User>),
    /// This token.
    Token(Vec<u8>),
}

/// A user of simple authentication.
#[derive(Clone, PartialEq, Eq, Default)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) password: String,
}

impl Credentials {
    /// Converts the credentials to the type of the front door.
    pub(crate) fn into_authentication(self) -> Authentication {
        match self {
            Credentials::None => Authentication::None,
            Credentials::Users(users) => {
                Authentication::Users(users.into_iter().map(|user| (user.name, user.password)).collect())
            }
            Credentials::Token(token) => Authentication::Token(token),
        }
    }
}

/// The content of the section, before the realm is looked up.
#[derive(Default)]
pub(crate) struct Security {
    enabled: bool,
    realms: Vec<Realm>,
    client_realm: Option<(String, Path, Node)>,
}

#[derive(Default)]
struct Realm {
    name: String,
    authentication: Option<Method>,
    identity: Option<Method>,
}

/// An authentication method, or the position of an unsupported method.
enum Method {
    Credentials(Credentials),
    Unsupported(Path, Node),
}

/// The settings of `security`.
pub(crate) const SECURITY: &[Setting<Security>] = &[
    Setting {
        name: "enabled",
        kind: Kind::Flag { get: |security| security.enabled, set: |security, on| security.enabled = on },
        unit: "",
        doc: "Whether the section counts.",
    },
    Setting {
        name: "realms",
        kind: Kind::Structure { what: "a list of realms", default: "none", read: read_realms },
        unit: "",
        doc: "Realms with a `name`, and `authentication.simple.users` (`username`, `password`; `roles` are not used) or \
              `identity.username-password` (`username`, `password`) or `identity.token` (`encoding`: none or base64, \
              `value`). A realm with other methods is an error where clients are told to use it.",
    },
    Setting {
        name: "client-authentication",
        kind: Kind::Structure { what: "a table with the name of a realm", default: "none", read: read_client_realm },
        unit: "",
        doc: "`realm`: the realm whose credentials a client must show.",
    },
    Setting {
        name: "member-authentication",
        kind: Kind::Structure { what: "a table with the name of a realm", default: "none", read: |_, _, _, _| Ok(()) },
        unit: "",
        doc: "`realm`: for members of a cluster. A standalone member has no others and does not use it.",
    },
];

/// Reads the section. Returns [`Credentials::None`] if it is not enabled.
pub(crate) fn read(walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<Credentials, Problem> {
    // A disabled section requests nothing. Its content is neither read nor reported.
    if let Some(enabled) = node.entry("enabled")
        && !walk.flag(&path.child("enabled"), &enabled.node)?
    {
        walk.table(path, node)?;
        return Ok(Credentials::None);
    }
    let mut security = Security::default();
    walk.section(path, node, SECURITY, &mut security)?;
    if !security.enabled {
        return Ok(Credentials::None);
    }
    let Some((name, realm_path, realm_node)) = security.client_realm else { return Ok(Credentials::None) };
    let Some(realm) = security.realms.into_iter().find(|realm| realm.name == name) else {
        return Err(walk.problem(&realm_path, &realm_node, "the name of one of the realms"));
    };
    match realm.authentication.or(realm.identity) {
        None => Ok(Credentials::None),
        Some(Method::Credentials(credentials)) => Ok(credentials),
        Some(Method::Unsupported(path, node)) => Err(walk.found(
            &path,
            &node,
            "an authentication method that is not supported".to_owned(),
            "simple users, a username-password identity or a token identity for clients".to_owned(),
        )),
    }
}

fn read_realms(security: &mut Security, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    for (number, item) in walk.list(path, node)?.iter().enumerate() {
        let mut realm = Realm::default();
        walk.section(&path.item(number), item, REALM, &mut realm)?;
        security.realms.push(realm);
    }
    Ok(())
}

const REALM: &[Setting<Realm>] = &[
    Setting {
        name: "name",
        kind: Kind::Text {
            what: "a name",
            get: |realm| realm.name.clone(),
            set: |realm, text| {
                realm.name = text.to_owned();
                true
            },
        },
        unit: "",
        doc: "The name by which the realm is chosen.",
    },
    Setting {
        name: "authentication",
        kind: Kind::Structure { what: "a table with one method", default: "", read: read_authentication },
        unit: "",
        doc: "How to authenticate.",
    },
    Setting {
        name: "identity",
        kind: Kind::Structure { what: "a table with one identity", default: "", read: read_identity },
        unit: "",
        doc: "What this member shows others, and asks of clients where there is no authentication.",
    },
    Setting {
        name: "access-control-service",
        kind: Kind::Structure { what: "a table", default: "", read: |_, _, _, _| Ok(()) },
        unit: "",
        doc: "Not used.",
    },
];

fn read_authentication(realm: &mut Realm, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    for entry in walk.table(path, node)? {
        let path = path.child(&entry.name);
        realm.authentication = Some(if entry.name == "simple" {
            Method::Credentials(Credentials::Users(read_users(walk, &path, &entry.node)?))
        } else {
            Method::Unsupported(path, entry.node.clone())
        });
    }
    Ok(())
}

fn read_users(walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<Vec<User>, Problem> {
    let mut users = Vec::new();
    walk.section(path, node, SIMPLE, &mut users)?;
    if users.is_empty() {
        return Err(walk.problem(path, node, "at least one user"));
    }
    Ok(users)
}

const SIMPLE: &[Setting<Vec<User>>] = &[
    Setting {
        name: "users",
        kind: Kind::Structure { what: "a list of users", default: "", read: read_user_list },
        unit: "",
        doc: "The users.",
    },
    Setting {
        name: "role-separator",
        kind: Kind::Structure { what: "a text", default: "", read: |_, _, _, _| Ok(()) },
        unit: "",
        doc: "Roles are not used.",
    },
];

fn read_user_list(users: &mut Vec<User>, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    for (number, item) in walk.list(path, node)?.iter().enumerate() {
        let path = path.item(number);
        let user = read_user(walk, &path, item)?;
        if users.iter().any(|other| other.name == user.name) {
            let found = format!("the user {:?} again", user.name);
            return Err(walk.found(&path, item, found, "each user once".to_owned()));
        }
        users.push(user);
    }
    Ok(())
}

fn read_user(walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<User, Problem> {
    let mut user = User::default();
    walk.section(path, node, USER, &mut user)?;
    if user.name.is_empty() {
        return Err(walk.found(path, node, "no username".to_owned(), "a username and a password".to_owned()));
    }
    if user.password.is_empty() {
        return Err(walk.found(path, node, "no password".to_owned(), "a username and a password".to_owned()));
    }
    Ok(user)
}

const USER: &[Setting<User>] = &[
    Setting {
        name: "username",
        kind: Kind::Text {
            what: "a name",
            get: |user| user.name.clone(),
            set: |user, text| {
                user.name = text.to_owned();
                true
            },
        },
        unit: "",
        doc: "The user's name.",
    },
    Setting {
        name: "password",
        kind: Kind::Text {
            what: "a password",
            get: |_| String::new(),
            set: |user, text| {
                user.password = text.to_owned();
                true
            },
        },
        unit: "",
        doc: "The user's password.",
    },
    Setting {
        name: "roles",
        kind: Kind::Structure { what: "a list of roles", default: "", read: |_, _, _, _| Ok(()) },
        unit: "",
        doc: "Not used: every authenticated client may do everything.",
    },
];

fn read_identity(realm: &mut Realm, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    for entry in walk.table(path, node)? {
        let path = path.child(&entry.name);
        realm.identity = Some(match entry.name.as_str() {
            "username-password" => {
                let user = read_user(walk, &path, &entry.node)?;
                Method::Credentials(Credentials::Users(vec![user]))
            }
            "token" => Method::Credentials(Credentials::Token(read_token(walk, &path, &entry.node)?)),
            _ => Method::Unsupported(path, entry.node.clone()),
        });
    }
    Ok(())
}

#[derive(Default)]
struct Token {
    base64: bool,
    value: String,
}

const TOKEN: &[Setting<Token>] = &[
    Setting {
        name: "encoding",
        kind: Kind::Choice {
            of: &["none", "base64"],
            get: |token| if token.base64 { "base64" } else { "none" },
            set: |token, word| token.base64 = word == "base64",
        },
        unit: "",
        doc: "How `value` is written.",
    },
    Setting {
        name: "value",
        kind: Kind::Text {
            what: "a token",
            get: |_| String::new(),
            set: |token, text| {
                token.value = text.to_owned();
                true
            },
        },
        unit: "",
        doc: "The token.",
    },
];

fn read_token(walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<Vec<u8>, Problem> {
    let mut token = Token::default();
    // In XML the token is the text of the element: `<token encoding="base64">...</token>`.
    match (&node.value, node.entry("token")) {
        (Value::Text(_), _) => token.value = walk.text(path, node, "a token")?.into_owned(),
        (_, Some(text)) => {
            token.value = walk.text(path, &text.node, "a token")?.into_owned();
            let others = walk.table(path, node)?.iter().filter(|entry| entry.name != "token").cloned().collect();
            walk.section(path, &Node::new(node.position, Value::Table(others)), TOKEN, &mut token)?;
        }
        _ => walk.section(path, node, TOKEN, &mut token)?,
    }
    let bytes = if token.base64 { base64(&token.value) } else { Some(token.value.into_bytes()) };
    match bytes {
        Some(bytes) if !bytes.is_empty() => Ok(bytes),
        Some(_) => Err(walk.found(path, node, "an empty token".to_owned(), "a token".to_owned())),
        None => Err(walk.found(path, node, "a token that is not base64".to_owned(), "base64".to_owned())),
    }
}

fn read_client_realm(security: &mut Security, walk: &mut Walk<'_>, path: &Path, node: &Node) -> Result<(), Problem> {
    for entry in walk.table(path, node)? {
        let path = path.child(&entry.name);
        if entry.name == "realm" {
            let name = walk.text(&path, &entry.node, "the name of a realm")?.into_owned();
            security.client_realm = Some((name, path, entry.node.clone()));
        } else {
            walk.unknown(&path, entry, &["realm"]);
        }
    }
    Ok(())
}

/// Decodes base64 with the standard alphabet and padding. White space is ignored.
fn base64(text: &str) -> Option<Vec<u8>> {
    let symbols: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    if symbols.is_empty() || !symbols.len().is_multiple_of(4) {
        return None;
    }
    let padding = symbols.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let data = symbols.get(..symbols.len() - padding)?;
    let mut bytes = Vec::with_capacity(data.len() * 3 / 4);
    for chunk in data.chunks(4) {
        let mut group = 0u32;
        for symbol in chunk {
            group = group << 6 | sextet(*symbol)?;
        }
        group <<= 6 * (4 - chunk.len());
        let [_, first, second, third] = group.to_be_bytes();
        bytes.extend([first, second, third].into_iter().take(chunk.len() - 1));
    }
    Some(bytes)
}

fn sextet(symbol: u8) -> Option<u32> {
    Some(match symbol {
        b'A'..=b'Z' => u32::from(symbol - b'A'),
        b'a'..=b'z' => u32::from(symbol - b'a') + 26,
        b'0'..=b'9' => u32::from(symbol - b'0') + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_of_rfc_4648() {
        for (text, expect) in [
            ("Zg==", "f"),
            ("Zm8=", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg==", "foob"),
            ("Zm9vYmE=", "fooba"),
            ("Zm9vYmFy", "foobar"),
            ("SGF6 ZWxj\nYXN0", "Hazelcast"),
        ] {
            assert_eq!(base64(text).as_deref(), Some(expect.as_bytes()), "{text}");
        }
        for text in ["", "Z", "Zg=", "Zg", "====", "Zm9*", "Zg==Zg=="] {
            assert_eq!(base64(text), None, "{text}");
        }
    }
}
