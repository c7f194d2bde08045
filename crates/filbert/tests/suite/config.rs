//! Tests of configuration files: values, notices and errors.

use std::error::Error;

use filbert::config::{FileSyntax, Loaded, Loader, NoticeKind};
use filbert::{Authentication, Config, ConfigError, EvictionPolicy, InMemoryFormat, MapConfig, MaxSizePolicy};

fn load_with(environment: &[(&str, &str)], syntax: FileSyntax, text: &str) -> Result<Loaded, ConfigError> {
    let lookup =
        |name: &str| environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let name = match syntax {
        FileSyntax::Yaml => "hazelcast.yaml",
        FileSyntax::Xml => "hazelcast.xml",
    };
    Loader::new(&lookup).text(syntax, name, text)
}

fn yaml(text: &str) -> Loaded {
    load_with(&[], FileSyntax::Yaml, text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn xml(text: &str) -> Loaded {
    load_with(&[], FileSyntax::Xml, text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Puts a body below `hazelcast:`, starting at line 2.
fn below_root(body: &str) -> String {
    let indented: String = body.lines().map(|line| format!("  {line}\n")).collect();
    format!("hazelcast:\n{indented}")
}

fn map(loaded: &Loaded, name: &str) -> MapConfig {
    loaded.config.grid.maps.find(name).unwrap().clone()
}

#[track_caller]
fn check_error(syntax: FileSyntax, text: &str, expect: &str) {
    match load_with(&[], syntax, text) {
        Ok(_) => panic!("expected the error {expect:?} of\n{text}"),
        Err(error) => assert_eq!(error.to_string(), expect, "\n{text}"),
    }
}

#[track_caller]
fn check_yaml_error(body: &str, expect: &str) {
    check_error(FileSyntax::Yaml, &below_root(body), expect);
}

#[track_caller]
fn check_notices(loaded: &Loaded, expect: &[&str]) {
    let notices: Vec<String> = loaded.notices.iter().map(ToString::to_string).collect();
    assert_eq!(notices, expect);
}

#[track_caller]
fn check_yaml_notices(body: &str, expect: &[&str]) {
    check_notices(&yaml(&below_root(body)), expect);
}

#[test]
fn an_empty_file_means_defaults() {
    let defaults = Config::default();
    for text in ["", "# nothing\n", "hazelcast:\n", "hazelcast: {}\n", "---\nhazelcast: ~\n", "\u{feff}hazelcast:\n"] {
        let loaded = yaml(text);
        assert_eq!(loaded.config.grid, defaults.grid, "{text:?}");
        assert!(loaded.notices.is_empty(), "{text:?}");
    }
    assert_eq!(xml("<hazelcast/>").config.grid, defaults.grid);
}

#[test]
fn both_syntaxes_say_the_same() {
    let from_yaml = yaml(include_str!("../samples/hazelcast.yaml"));
    let from_xml = xml(include_str!("../samples/hazelcast.xml"));
    assert_eq!(from_yaml.config, from_xml.config);
    let paths = |loaded: &Loaded| loaded.notices.iter().map(|notice| notice.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&from_yaml), paths(&from_xml));
}

#[test]
fn the_full_sample_is_read() {
    let loaded = yaml(include_str!("../samples/hazelcast.yaml"));
    let config = &loaded.config;
    assert_eq!(config.grid.cluster_name, "warehouse");
    assert_eq!(config.instance_name.as_deref(), Some("shelf-1"));
    assert_eq!(config.grid.partition_count, 113);
    assert_eq!(config.grid.memory_bytes_max, Some(2 << 30));
    assert_eq!(config.grid.lock_waiters_max, 7);
    assert_eq!(config.door.message_bytes_max, 8 << 20);
    assert_eq!(config.door.listen, "127.0.0.2:6000".parse().unwrap());
    assert_eq!(config.door.heartbeat_timeout.as_secs(), 60);
    assert_eq!(config.door.call_timeout.as_secs(), 5);
    let users = [("ada", "countess"), ("grace", "admiral")].map(|(name, secret)| (name.to_owned(), secret.to_owned()));
    assert_eq!(config.door.authentication, Authentication::Users(users.into()));
    assert!(!config.door.port_auto_increment);
    assert!(config.serve_clients);

    let orders = map(&loaded, "orders");
    assert_eq!(orders.in_memory_format, InMemoryFormat::Object);
    assert_eq!((orders.ttl_seconds, orders.max_idle_seconds), (60, 30));
    assert_eq!((orders.backup_count, orders.async_backup_count), (2, 1));
    assert!(orders.read_backup_data && orders.per_entry_stats_enabled && !orders.statistics_enabled);
    assert_eq!(orders.eviction.policy, EvictionPolicy::Lfu);
    assert_eq!(orders.eviction.max_size_policy, MaxSizePolicy::PerPartition);
    assert_eq!(orders.eviction.size, 5000);
    let journal = orders.event_journal.unwrap();
    assert_eq!((journal.capacity, journal.ttl_seconds), (2000, 10));
    let attributes: Vec<_> = orders.indexes.iter().map(|index| index.attributes.join(",")).collect();
    assert_eq!(attributes, ["customer", "country,city", "state"]);
    assert_eq!(orders.indexes[0].name.as_deref(), Some("by-customer"));
    let near_cache = orders.near_cache.unwrap();
    assert!(!near_cache.invalidate_on_change);
    assert_eq!((near_cache.ttl_seconds, near_cache.max_idle_seconds, near_cache.eviction.size), (5, 4, 300));

    assert_eq!(map(&loaded, "session-17").max_idle_seconds, 1800);
    assert_eq!(map(&loaded, "anything else").ttl_seconds, 600);
    check_notices(
        &loaded,
        &[
            "line 5: license-key is not needed: every feature is there without a licence",
            "line 71: map.orders.map-store is not supported: values are not loaded from or written to another store",
            "line 120: properties.some.other.property is not supported",
        ],
    );
}

#[test]
fn what_is_not_supported_is_listed_by_name_and_line() {
    check_yaml_notices(
        "license-key: abc",
        &["line 2: license-key is not needed: every feature is there without a licence"],
    );
    check_yaml_notices(
        "import:\n- other.yaml",
        &["line 2: import is not supported: the imported file is not read; write its settings here"],
    );
    check_yaml_notices(
        "queue:\n  default:\n    max-size: 0",
        &["line 2: queue is not supported: only maps are served"],
    );
    check_yaml_notices("no-such-thing: 1", &["line 2: no-such-thing is not supported"]);
    check_yaml_notices("cluster-nam: a", &["line 2: cluster-nam is not supported: did you mean cluster-name?"]);
    check_yaml_notices(
        "map:\n  a:\n    time-to-live: 5\n    max-idle-second: 5",
        &[
            "line 4: map.a.time-to-live is not supported",
            "line 5: map.a.max-idle-second is not supported: did you mean max-idle-seconds?",
        ],
    );
    check_yaml_notices(
        "map:\n  a:\n    eviction:\n      sizes: 5",
        &["line 5: map.a.eviction.sizes is not supported: did you mean size?"],
    );
    check_yaml_notices(
        "map:\n  a.b.c:\n    map-store:\n      class-name: x",
        &["line 4: map.a.b.c.map-store is not supported: values are not loaded from or written to another store"],
    );
    check_yaml_notices(
        "network:\n  ssl:\n    enabled: true",
        &["line 3: network.ssl is not supported: clients are served without TLS"],
    );
    check_yaml_notices(
        "network:\n  interfaces:\n    enabled: true\n    interfaces:\n    - 10.10.1.*",
        &["line 6: network.interfaces.interfaces is not supported: a pattern of addresses; name one address, here or \
           with --listen"],
    );
    check_yaml_notices(
        "serialization:\n  byte-order: LITTLE_ENDIAN",
        &["line 3: serialization.byte-order is not supported: the embedded API reads and writes BIG_ENDIAN"],
    );
    check_yaml_notices(
        "map:\n  a:\n    indexes:\n    - attributes: [x]\n      bitmap-index-options:\n        unique-key: id",
        &["line 6: map.a.indexes[1].bitmap-index-options is not supported"],
    );
    check_yaml_notices(
        "properties:\n  hazelcast.partition.cont: 3",
        &["line 3: properties.hazelcast.partition.cont is not supported: did you mean hazelcast.partition.count?"],
    );
}

#[test]
fn what_asks_for_nothing_is_not_listed() {
    check_yaml_notices("network:\n  ssl:\n    enabled: false\n    properties:\n      keyStore: x", &[]);
    check_yaml_notices("network:\n  join:\n    multicast:\n      enabled: false\n    aws:\n      enabled: false", &[]);
    check_yaml_notices(
        "network:\n  join:\n    kubernetes:\n      enabled: true\n    tcp-ip:\n      enabled: true\n      interface: 10.0.0.1",
        &[
            "line 4: network.join.kubernetes is not supported: members of a cluster are named, by network.join.tcp-ip or --join",
            "line 7: network.join.tcp-ip is not supported: it names no member: this one stays alone",
            "line 8: network.join.tcp-ip.interface is not supported",
        ],
    );
    check_yaml_notices("persistence:\n  enabled: off", &[]);
    check_yaml_notices("map:\n  a:\n    merge-policy:\n      batch-size: 1\n    metadata-policy: OFF", &[]);
    check_yaml_notices("serialization:\n  portable-version: 1\n  check-class-def-errors: true", &[]);
    check_yaml_notices("properties:\n  hazelcast.phone.home.enabled: false\n  hazelcast.logging.type: slf4j", &[]);
    check_yaml_notices("security:\n  enabled: false\n  client-permissions:\n    all:\n      principal: x", &[]);
}

#[test]
fn strict_refuses_what_is_not_supported_and_nothing_else() {
    let loaded = yaml(&below_root("license-key: abc\nqueue:\n  q: {}\nmap:\n  a:\n    map-store: {}"));
    let error = loaded.strict().unwrap_err();
    assert_eq!(
        error.to_string(),
        "2 settings of hazelcast.yaml not supported, and --strict refuses that:\n  \
         line 3: queue is not supported: only maps are served\n  \
         line 7: map.a.map-store is not supported: values are not loaded from or written to another store"
    );
    let loaded = yaml(&below_root("license-key: abc"));
    assert_eq!(loaded.notices[0].kind, NoticeKind::NotNeeded);
    loaded.strict().unwrap();
}

#[test]
fn wrong_values_are_told_with_their_place() {
    let check = check_yaml_error;
    check("cluster-name: ''", "hazelcast.yaml:2:17: cluster-name: found \"\", expected a name");
    check("cluster-name:", "hazelcast.yaml:2:3: cluster-name: found nothing, expected a name");
    check("cluster-name: [a]", "hazelcast.yaml:2:17: cluster-name: found a list, expected a name");
    check("cluster-name: {a: b}", "hazelcast.yaml:2:17: cluster-name: found a table of settings, expected a name");
    check("network: 5", "hazelcast.yaml:2:12: network: found \"5\", expected a table of settings");
    check("network: [a]", "hazelcast.yaml:2:12: network: found a list, expected a table of settings");
    check(
        "network:\n  port: many",
        "hazelcast.yaml:3:11: network.port: found \"many\", expected a whole number from 0 to 65535",
    );
    check(
        "network:\n  port:\n    port: 70000",
        "hazelcast.yaml:4:13: network.port.port: found \"70000\", expected a whole number from 0 to 65535",
    );
    check(
        "network:\n  port:\n    port: -1",
        "hazelcast.yaml:4:13: network.port.port: found \"-1\", expected a whole number from 0 to 65535",
    );
    check(
        "network:\n  port:\n    auto-increment: maybe",
        "hazelcast.yaml:4:23: network.port.auto-increment: found \"maybe\", expected true or false",
    );
    check(
        "network:\n  port:\n    port-count: 0",
        "hazelcast.yaml:4:19: network.port.port-count: found \"0\", expected a whole number from 1 to 65535",
    );
    check(
        "network:\n  interfaces:\n    enabled: 3",
        "hazelcast.yaml:4:16: network.interfaces.enabled: found \"3\", expected true or false",
    );
    check("map: 5", "hazelcast.yaml:2:8: map: found \"5\", expected a table of settings");
    check("map:\n  a: 5", "hazelcast.yaml:3:8: map.a: found \"5\", expected a table of settings");
    check(
        "map:\n  a*b*:\n    backup-count: 1",
        "hazelcast.yaml:3:5: map.a*b*: found the name \"a*b*\", expected at most one * in a name",
    );
    check(
        "map:\n  a:\n    time-to-live-seconds: -5",
        "hazelcast.yaml:4:29: map.a.time-to-live-seconds: found \"-5\", expected a whole number from 0 to 2147483647",
    );
    check(
        "map:\n  a:\n    time-to-live-seconds: 1.5",
        "hazelcast.yaml:4:29: map.a.time-to-live-seconds: found \"1.5\", expected a whole number from 0 to 2147483647",
    );
    check(
        "map:\n  a:\n    max-idle-seconds: 2147483648",
        "hazelcast.yaml:4:25: map.a.max-idle-seconds: found \"2147483648\", expected a whole number from 0 to \
         2147483647",
    );
    check(
        "map:\n  a:\n    backup-count: 7",
        "hazelcast.yaml:4:21: map.a.backup-count: found \"7\", expected a whole number from 0 to 6",
    );
    check(
        "map:\n  a:\n    in-memory-format: COLUMNS",
        "hazelcast.yaml:4:25: map.a.in-memory-format: found \"COLUMNS\", expected BINARY, OBJECT or NATIVE",
    );
    check(
        "map:\n  a:\n    eviction:\n      eviction-policy: FIFO",
        "hazelcast.yaml:5:26: map.a.eviction.eviction-policy: found \"FIFO\", expected LRU, LFU, RANDOM or NONE",
    );
    check(
        "map:\n  a:\n    eviction: LRU",
        "hazelcast.yaml:4:17: map.a.eviction: found \"LRU\", expected a table of settings",
    );
    check(
        "map:\n  a:\n    eviction:\n      eviction-policy: LRU\n      max-size-policy: USED_HEAP_PERCENTAGE\n      size: 101",
        "hazelcast.yaml:3:5: map.a.eviction.size: found 101, expected a percentage up to 100",
    );
    check(
        "map:\n  a:\n    near-cache:\n      eviction:\n        max-size-policy: PER_NODE",
        "hazelcast.yaml:6:28: map.a.near-cache.eviction.max-size-policy: found \"PER_NODE\", expected ENTRY_COUNT, \
         USED_NATIVE_MEMORY_SIZE, USED_NATIVE_MEMORY_PERCENTAGE, FREE_NATIVE_MEMORY_SIZE or \
         FREE_NATIVE_MEMORY_PERCENTAGE",
    );
    check(
        "map:\n  a:\n    event-journal:\n      capacity: 0",
        "hazelcast.yaml:5:19: map.a.event-journal.capacity: found \"0\", expected a whole number from 1 to 2147483647",
    );
    check(
        "map:\n  a:\n    indexes:\n      type: HASH",
        "hazelcast.yaml:5:9: map.a.indexes: found a table of settings, expected a list",
    );
    check(
        "map:\n  a:\n    indexes:\n    - type: HASH",
        "hazelcast.yaml:5:9: map.a.indexes[1]: found an index without attributes, expected at least one attribute",
    );
    check(
        "map:\n  a:\n    indexes:\n    - attributes: [x]\n    - type: TREE\n      attributes: [y]",
        "hazelcast.yaml:6:15: map.a.indexes[2].type: found \"TREE\", expected SORTED, HASH or BITMAP",
    );
    check(
        "map:\n  a:\n    columns:\n    - path: x",
        "hazelcast.yaml:5:9: map.a.columns[1]: found a column without path or type, expected both of them",
    );
    check(
        "map:\n  a:\n    columns:\n    - path: x\n      type: UUID",
        "hazelcast.yaml:6:15: map.a.columns[1].type: found \"UUID\", expected a type of SQL such as INTEGER, DOUBLE, \
         VARCHAR or DECIMAL(10, 2)",
    );
    check(
        "native-memory:\n  enabled: true\n  capacity: lots",
        "hazelcast.yaml:4:15: native-memory.capacity: found \"lots\", expected an amount of memory such as 512MiB or \
         4GiB",
    );
    check(
        "native-memory:\n  capacity:\n    unit: BUCKETS",
        "hazelcast.yaml:4:13: native-memory.capacity.unit: found \"BUCKETS\", expected BYTES, KILOBYTES, MEGABYTES or \
         GIGABYTES",
    );
    check(
        "properties:\n  hazelcast.partition.count: 0",
        "hazelcast.yaml:3:32: properties.hazelcast.partition.count: found \"0\", expected a whole number from 1 to 65535",
    );
    check(
        "properties:\n  filbert.memory.max: -1",
        "hazelcast.yaml:3:25: properties.filbert.memory.max: found \"-1\", expected an amount of memory such as 512MiB \
         or 4GiB",
    );
    check("properties: [a]", "hazelcast.yaml:2:15: properties: found a list, expected a table of settings");
    check(
        "cluster-name: ${NOT_SET}",
        "hazelcast.yaml:2:17: cluster-name: found ${NOT_SET}, which is not set in the environment, expected a name",
    );
}

#[test]
fn wrong_credentials_are_told_with_their_place() {
    let check = check_yaml_error;
    let realm = "security:\n  enabled: true\n  client-authentication:\n    realm: r\n  realms:\n  - name: r\n";
    check(
        "security:\n  enabled: true\n  client-authentication:\n    realm: nobody",
        "hazelcast.yaml:5:14: security.client-authentication.realm: found \"nobody\", expected the name of one of the \
         realms",
    );
    check(
        &format!("{realm}    authentication:\n      ldap:\n        url: x"),
        "hazelcast.yaml:10:11: security.realms[1].authentication.ldap: found an authentication method that is not \
         supported, expected simple users, a username-password identity or a token identity for clients",
    );
    check(
        &format!("{realm}    authentication:\n      simple:\n        users: []"),
        "hazelcast.yaml:10:11: security.realms[1].authentication.simple: found a table of settings, expected at least \
         one user",
    );
    check(
        &format!("{realm}    authentication:\n      simple:\n        users:\n        - username: a"),
        "hazelcast.yaml:11:13: security.realms[1].authentication.simple.users[1]: found no password, expected a \
         username and a password",
    );
    check(
        &format!("{realm}    authentication:\n      simple:\n        users:\n        - password: a"),
        "hazelcast.yaml:11:13: security.realms[1].authentication.simple.users[1]: found no username, expected a \
         username and a password",
    );
    check(
        &format!(
            "{realm}    authentication:\n      simple:\n        users:\n        - {{username: a, password: x}}\n        \
             - {{username: a, password: y}}"
        ),
        "hazelcast.yaml:12:13: security.realms[1].authentication.simple.users[2]: found the user \"a\" again, expected \
         each user once",
    );
    check(
        &format!("{realm}    identity:\n      token:\n        encoding: base64\n        value: '***'"),
        "hazelcast.yaml:10:11: security.realms[1].identity.token: found a token that is not base64, expected base64",
    );
}

#[test]
fn broken_yaml_is_told_with_its_place() {
    let check = |text: &str, expect: &str| check_error(FileSyntax::Yaml, text, expect);
    check(
        "hazelcast:\n  cluster-name: a\n  cluster-name: b\n",
        "hazelcast.yaml:3:3: found \"cluster-name\" again, expected the name once (it stands on line 2 too)",
    );
    check(
        "hazelcast:\n  map:\n    a: {}\n    a: {}\n",
        "hazelcast.yaml:4:5: found \"a\" again, expected the name once (it stands on line 3 too)",
    );
    check(
        "hazelcast-client:\n  cluster-name: a\n",
        "hazelcast.yaml:1:1: found \"hazelcast-client\", expected hazelcast as the one element of the root",
    );
    check("just a text\n", "hazelcast.yaml:1:1: found \"just a text\", expected a table of settings");
    check("- a\n- b\n", "hazelcast.yaml:1:1: found a list, expected a table of settings");
    check(
        "hazelcast: {}\n---\nhazelcast: {}\n",
        "hazelcast.yaml:3:1: found a second document, expected one document in the file",
    );
    check(
        "hazelcast:\n  [a]: b\n",
        "hazelcast.yaml:2:3: found a table or a list as a name, expected a text as the name",
    );
    for broken in
        ["hazelcast:\n\tcluster-name: a\n", "hazelcast: [a\n", "hazelcast: 'a\n", "a: b: c\n", "hazelcast:\n  a: *b\n"]
    {
        let error = load_with(&[], FileSyntax::Yaml, broken).unwrap_err().to_string();
        assert!(error.starts_with("hazelcast.yaml:") && error.contains("broken YAML"), "{broken:?}: {error}");
    }
}

#[test]
fn broken_xml_is_told_with_its_place() {
    let check = |text: &str, expect: &str| check_error(FileSyntax::Xml, text, expect);
    check(
        "<hazelcast>\n  <cluster-name>a</cluster-name>\n  <cluster-name>b</cluster-name>\n</hazelcast>",
        "hazelcast.xml:3:3: cluster-name: found it again, expected it once (it stands on line 2 too)",
    );
    check(
        "<hazelcast>\n  <map name=\"a\"/>\n  <map name=\"a\"/>\n</hazelcast>",
        "hazelcast.xml:3:3: map.a: found it again, expected it once (it stands on line 2 too)",
    );
    check(
        "<hazelcast>\n  <network>\n    <port>x</port>\n  </network>\n</hazelcast>",
        "hazelcast.xml:3:11: network.port: found \"x\", expected a whole number from 0 to 65535",
    );
    check(
        "<hazelcast>\n  <network>\n    <port auto-increment=\"x\">5701</port>\n  </network>\n</hazelcast>",
        "hazelcast.xml:3:11: network.port.auto-increment: found \"x\", expected true or false",
    );
    check(
        "<hazelcast>\n  <map name=\"a\">\n    <eviction size=\"-1\"/>\n  </map>\n</hazelcast>",
        "hazelcast.xml:3:15: map.a.eviction.size: found \"-1\", expected a whole number from 0 to 2147483647",
    );
    check(
        "<hazelcast>\n  <map>\n    <backup-count>1</backup-count>\n  </map>\n</hazelcast>",
        "hazelcast.xml:3:19: map.backup-count: found \"1\", expected a table of settings",
    );
    check(
        "<hazelcast>\n  text <cluster-name>a</cluster-name>\n</hazelcast>",
        "hazelcast.xml:2:3: found \"text\", expected elements only",
    );
    check("<other/>", "hazelcast.xml:1:1: found \"other\", expected hazelcast as the one element of the root");
    for broken in ["", "<hazelcast>", "<hazelcast></other>", "<hazelcast a=b/>", "<hazelcast>&nope;</hazelcast>", "{}"]
    {
        let error = load_with(&[], FileSyntax::Xml, broken).unwrap_err().to_string();
        assert!(error.starts_with("hazelcast.xml:") && error.contains("broken XML"), "{broken:?}: {error}");
    }
    let with_entity = "<!DOCTYPE a [<!ENTITY x \"y\">]><hazelcast>&x;</hazelcast>";
    assert!(load_with(&[], FileSyntax::Xml, with_entity).is_err());
}

#[test]
fn hostile_files_end_with_an_error() {
    let deep = format!("hazelcast: {}{}", "[".repeat(200), "]".repeat(200));
    check_error(FileSyntax::Yaml, &deep, "hazelcast.yaml:1:76: found deeper nesting, expected at most 64 levels");
    let deep = format!("{}{}", "<hazelcast>".repeat(200), "</hazelcast>".repeat(200));
    check_error(FileSyntax::Xml, &deep, "hazelcast.xml:1:716: found deeper nesting, expected at most 64 levels");
    let mut laughs = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..10 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        laughs.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    let error = load_with(&[], FileSyntax::Yaml, &laughs).unwrap_err().to_string();
    assert!(error.ends_with("expected at most 10000 values through aliases"), "{error}");
}

#[test]
fn the_spellings_of_one_thing() {
    assert_eq!(yaml(&below_root("network:\n  port: 6001")).config.door.listen.port(), 6001);
    assert_eq!(yaml(&below_root("network:\n  port:\n    port: 6001")).config.door.listen.port(), 6001);
    assert_eq!(xml("<hazelcast><network><port>6001</port></network></hazelcast>").config.door.listen.port(), 6001);
    let policy = |word: &str| {
        let body = format!("map:\n  a:\n    eviction: {{eviction-policy: {word}, size: 9}}");
        map(&yaml(&below_root(&body)), "a").eviction.policy
    };
    assert_eq!(policy("LRU"), EvictionPolicy::Lru);
    assert_eq!(policy("lru"), EvictionPolicy::Lru);
    assert_eq!(policy("'RANDOM'"), EvictionPolicy::Random);
    let flag = |word: &str| {
        map(&yaml(&below_root(&format!("map:\n  a:\n    statistics-enabled: {word}"))), "a").statistics_enabled
    };
    assert!(flag("true") && flag("TRUE") && flag("yes") && flag("'true'"));
    assert!(!flag("false") && !flag("off") && !flag("No"));
    let index = map(&yaml(&below_root("map:\n  a:\n    indexes:\n    - attributes: price")), "a").indexes;
    assert_eq!(index[0].attributes, ["price"]);
    let columns = |config: Loaded| {
        let of_map = map(&config, "a").columns;
        of_map.into_iter().map(|column| format!("{} {}", column.field, column.field_type)).collect::<Vec<_>>()
    };
    let in_yaml = "map:\n  a:\n    columns:\n    - {path: address.city, type: varchar}\n    - {path: __key#id, type: 'decimal( 9,2 )'}";
    assert_eq!(columns(yaml(&below_root(in_yaml))), ["address.city VARCHAR", "__key.id DECIMAL(9, 2)"]);
    let in_xml = "<hazelcast><map name=\"a\"><columns><column path=\"age\" type=\"INT\"/></columns></map></hazelcast>";
    assert_eq!(columns(xml(in_xml)), ["age INTEGER"]);
}

#[test]
fn aliases_repeat_what_they_name() {
    let text = "hazelcast:\n  map:\n    a: &short\n      time-to-live-seconds: 5\n    b: *short\n";
    assert_eq!(map(&yaml(text), "b").ttl_seconds, 5);
}

#[test]
fn an_event_journal_can_be_off() {
    let journal = |body: &str| {
        map(&yaml(&below_root(&format!("map:\n  a:\n    event-journal: {body}"))), "a")
            .event_journal
            .map(|j| j.capacity)
    };
    assert_eq!(journal("{enabled: false, capacity: 5}"), None);
    assert_eq!(journal("{enabled: true, capacity: 5}"), Some(5));
    assert_eq!(journal("{capacity: 5}"), Some(5));
    assert_eq!(journal("{enabled: true}"), Some(10_000));
}

#[test]
fn the_address_to_listen_on() {
    let listen = |body: &str| yaml(&below_root(body)).config.door.listen.to_string();
    assert_eq!(listen("cluster-name: a"), "127.0.0.1:5701");
    assert_eq!(listen("network:\n  port: 0"), "127.0.0.1:0");
    assert_eq!(listen("network:\n  interfaces: {enabled: true, interfaces: [0.0.0.0]}"), "0.0.0.0:5701");
    assert_eq!(listen("network:\n  interfaces: {enabled: false, interfaces: [0.0.0.0]}"), "127.0.0.1:5701");
    assert_eq!(listen("network:\n  interfaces: {interfaces: ['::1'], enabled: true}\n  port: 7"), "[::1]:7");
    assert_eq!(listen("properties:\n  hazelcast.socket.bind.any: true"), "0.0.0.0:5701");
    assert_eq!(listen("properties:\n  hazelcast.socket.server.bind.any: true"), "0.0.0.0:5701");
    assert_eq!(listen("properties:\n  hazelcast.socket.bind.any: false"), "127.0.0.1:5701");
}

#[test]
fn credentials_come_from_the_realm_of_clients() {
    let credentials = |body: &str| yaml(&below_root(body)).config.door.authentication;
    let none = Authentication::None;
    let realm = |realm: &str| {
        format!(
            "security:\n  enabled: true\n  client-authentication: {{realm: r}}\n  realms:\n  - name: r\n    {realm}"
        )
    };
    let users = credentials(&realm("authentication: {simple: {users: [{username: ada, password: x1}]}}"));
    assert_eq!(users, Authentication::Users(vec![("ada".to_owned(), "x1".to_owned())]));
    assert_eq!(credentials(&realm("identity: {username-password: {username: ada, password: x1}}")), users);
    assert_ne!(credentials(&realm("identity: {token: {value: abc}}")), none);
    assert_eq!(
        credentials(&realm("identity: {token: {encoding: base64, value: YWJj}}")),
        credentials(&realm("identity: {token: {encoding: none, value: abc}}"))
    );
    assert_eq!(credentials("security: {enabled: true}"), none);
    assert_eq!(
        credentials(&realm("authentication: {simple: {users: [{username: a, password: b}]}}").replace("true", "false")),
        none
    );
    let in_xml = |identity: &str| {
        let text = format!(
            "<hazelcast><security enabled=\"true\"><realms><realm name=\"r\"><identity>{identity}</identity></realm></realms>\
             <client-authentication realm=\"r\"/></security></hazelcast>"
        );
        xml(&text).config.door.authentication
    };
    assert_eq!(in_xml("<username-password username=\"ada\" password=\"x1\"/>"), users);
    assert_eq!(in_xml("<token>abc</token>"), credentials(&realm("identity: {token: {value: abc}}")));
    assert_eq!(in_xml("<token encoding=\"base64\">YWJj</token>"), in_xml("<token>abc</token>"));
}

#[test]
fn variables_are_replaced_where_their_setting_is_used() {
    let environment = [("CLUSTER", "from-env"), ("TTL", "77"), ("HZ_FORMAT", "OBJECT")];
    let text = below_root(
        "cluster-name: ${CLUSTER}\nlicense-key: ${NOT_SET}\nmap:\n  a:\n    time-to-live-seconds: ${TTL}\n    \
         max-idle-seconds: ${IDLE:5}\n    in-memory-format: ${hz.format}",
    );
    let loaded = load_with(&environment, FileSyntax::Yaml, &text).unwrap();
    assert_eq!(loaded.config.grid.cluster_name, "from-env");
    let a = map(&loaded, "a");
    assert_eq!((a.ttl_seconds, a.max_idle_seconds, a.in_memory_format), (77, 5, InMemoryFormat::Object));
}

#[test]
fn the_environment_wins_over_the_file() {
    let text = below_root("properties:\n  filbert.lock.waiters.max: 5\n  filbert.objects.max: 6");
    let loaded = load_with(&[("FILBERT_LOCK_WAITERS_MAX", "50")], FileSyntax::Yaml, &text).unwrap();
    assert_eq!((loaded.config.grid.lock_waiters_max, loaded.config.grid.objects_max), (50, 6));
    let error = load_with(&[("FILBERT_OBJECTS_MAX", "all")], FileSyntax::Yaml, &text).unwrap_err();
    assert_eq!(error.to_string(), "FILBERT_OBJECTS_MAX: found \"all\", expected a whole number from 1 to 2147483647");
}

#[test]
fn a_policy_of_percentages_needs_a_memory_limit() {
    let body = "map:\n  a:\n    eviction: {eviction-policy: LRU, max-size-policy: USED_HEAP_PERCENTAGE, size: 20}";
    let mut loaded = yaml(&below_root(body));
    assert_eq!(
        loaded.check().unwrap_err().to_string(),
        "hazelcast.yaml:3:5: map.a.eviction.max-size-policy: found USED_HEAP_PERCENTAGE, expected a memory limit beside \
         it (--memory-max)"
    );
    loaded.config.grid.memory_bytes_max = Some(1 << 30);
    loaded.check().unwrap();
    yaml(&below_root(&format!("{body}\nnative-memory: {{enabled: true, capacity: 1GiB}}"))).check().unwrap();
}

#[test]
fn no_limit_is_written_as_zero() {
    let size = |body: &str| map(&yaml(&below_root(&format!("map:\n  a:\n    eviction: {body}"))), "a").eviction.size;
    assert_eq!(size("{eviction-policy: LRU, size: 0}"), i32::MAX as u32);
    assert_eq!(size("{eviction-policy: LRU}"), i32::MAX as u32);
    assert_eq!(size("{eviction-policy: LRU, size: 1}"), 1);
}

#[test]
fn files_are_found_in_the_working_directory() {
    let directory = std::env::temp_dir().join(format!("filbert-config-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let none = |_: &str| None;
    let loader = Loader::new(&none);
    assert_eq!(loader.search(&directory).unwrap().file, "");
    std::fs::write(directory.join("hazelcast.xml"), "<hazelcast><cluster-name>x</cluster-name></hazelcast>").unwrap();
    assert_eq!(loader.search(&directory).unwrap().config.grid.cluster_name, "x");
    std::fs::write(directory.join("hazelcast.yml"), "hazelcast: {cluster-name: yml}").unwrap();
    assert_eq!(loader.search(&directory).unwrap().config.grid.cluster_name, "yml");
    std::fs::write(directory.join("hazelcast.yaml"), "hazelcast: {cluster-name: yaml}").unwrap();
    assert_eq!(loader.search(&directory).unwrap().config.grid.cluster_name, "yaml");

    let missing = loader.file(&directory.join("missing.yaml")).unwrap_err();
    assert!(missing.to_string().starts_with("cannot read the configuration file "));
    assert!(missing.source().is_some());
    let other = loader.file(&directory.join("hazelcast.toml")).unwrap_err();
    assert!(other.to_string().ends_with("expected a name that ends in .yaml, .yml or .xml"));
    std::fs::write(directory.join("binary.yaml"), [0xff, 0xfe, 0x00]).unwrap();
    assert!(loader.file(&directory.join("binary.yaml")).is_err());
    std::fs::write(directory.join("huge.yaml"), vec![b'#'; (4 << 20) + 1]).unwrap();
    let huge = loader.file(&directory.join("huge.yaml")).unwrap_err();
    assert!(huge.to_string().contains("found more than 4194304 bytes"), "{huge}");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn the_reference_tells_every_setting_with_its_default() {
    let page = filbert::settings_markdown(&[]);
    for expected in [
        "| `cluster-name` | a name | dev |",
        "| `network.port.port` | a whole number from 0 to 65535 | 5701 |",
        "| `time-to-live-seconds` | a whole number from 0 to 2147483647 | 0 | seconds |",
        "| `eviction.eviction-policy` | LRU, LFU, RANDOM or NONE | NONE |",
        "| `hazelcast.partition.count` |  | a whole number from 1 to 65535 | 271 |",
        "| `filbert.lock.waiters.max` | `FILBERT_LOCK_WAITERS_MAX` |",
    ] {
        assert!(page.contains(expected), "{expected} is missing in\n{page}");
    }
}

#[test]
fn members_of_a_cluster_are_read() {
    let cluster = |body: &str| yaml(&below_root(body)).config.cluster;
    let tcp_ip = |rest: &str| format!("network:\n  port: 6001\n  join:\n    tcp-ip:\n      enabled: true\n{rest}");
    let read = cluster(&tcp_ip("      member-list: [a, 'b:5702', 10.0.0.4-5]\n      required-member: c")).unwrap();
    assert_eq!(read.members, ["a:6001", "b:5702", "10.0.0.4:6001", "10.0.0.5:6001", "c:6001"]);
    assert_eq!((read.required.as_deref(), read.is_lite, read.listen), (Some("c:6001"), false, None));
    // A text instead of a list, with a duplicate.
    assert_eq!(cluster(&tcp_ip("      members: a, b, a")).unwrap().members, ["a:6001", "b:6001"]);
    let lite = cluster(&(tcp_ip("      member-list: [a]") + "\nlite-member:\n  enabled: true")).unwrap();
    assert!(lite.is_lite);
    // No member is named, or joining is disabled.
    assert_eq!(cluster(&tcp_ip("      member-list: []")), None);
    assert_eq!(cluster("network:\n  join:\n    tcp-ip:\n      enabled: false\n      member-list: [a]"), None);
    let sample = xml(include_str!("../samples/hazelcast.xml")).config.cluster.unwrap();
    assert_eq!(sample.members, ["127.0.0.1:6000"]);
    let many = tcp_ip("      member-list: [10.0.0.0-255, 10.0.1.0-255]");
    check_yaml_error(
        &many,
        "hazelcast.yaml:7:37: network.join.tcp-ip.member-list: found 512 members, expected at most 256",
    );
    let pattern =
        load_with(&[], FileSyntax::Yaml, &below_root(&tcp_ip("      member-list: ['10.0.0.*']"))).unwrap_err();
    assert!(pattern.to_string().contains("found \"10.0.0.*\", expected a host, an address, or a range"), "{pattern}");
}
