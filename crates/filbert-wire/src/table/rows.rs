//! The macros that turn rows of the table into types, codecs and specifications.

/// The fields of one message: the struct and its [`Payload`](crate::Payload).
macro_rules! payload {
    (
        $doc:expr,
        $name:ident $($life:lifetime)?, $id:expr, $direction:expr, $since:literal {
            $( $(#[since($later:literal)])? $field:ident : $type:ty ),* $(,)?
        }
    ) => {
        #[doc = $doc]
        #[derive(Clone, Debug, Default, PartialEq)]
        #[allow(missing_docs, reason = "the fields carry the protocol's names")]
        pub struct $name $(<$life>)? {
            $( pub $field: $type, )*
        }

        impl<'a> $crate::Payload<'a> for $name $(<$life>)? {
            const ID: $crate::MessageId = $id;
            const DIRECTION: $crate::Direction = $direction;
            const FIELDS: &'static [$crate::FieldSpec] = &[$(
                $crate::FieldSpec {
                    name: stringify!($field),
                    kind: stringify!($type),
                    nullable: <$type as $crate::codec::Field<'a>>::NULLABLE,
                    since: $crate::table::since!($since $(, $later)?),
                },
            )*];

            #[inline]
            #[allow(unused_variables, reason = "a message may have no fields")]
            fn put_fixed(&self, out: &mut Vec<u8>) {
                $( $crate::codec::Field::put_fixed(&self.$field, out); )*
            }

            #[inline]
            #[allow(unused_variables, reason = "a message may have no fields")]
            fn put_variable(&self, writer: &mut $crate::codec::Writer<'_>) {
                $( $crate::codec::Field::put_variable(&self.$field, writer); )*
            }

            #[inline]
            fn size_hint(&self) -> usize {
                0 $( + <$type as $crate::codec::Field<'a>>::FIXED_BYTES
                    + $crate::codec::Field::size_hint(&self.$field) )*
            }

            #[inline]
            #[allow(unused_variables, reason = "a message may have no fields")]
            fn read(reader: &mut $crate::codec::Reader<'a>) -> Result<Self, $crate::codec::Fault> {
                Ok(Self { $( $field: $crate::table::read_field!(reader, stringify!($field) $(, $later)?)?, )* })
            }

            #[inline]
            #[allow(unused_variables, reason = "a message may have no fields")]
            fn sample(source: &mut $crate::sample::Source<'a>) -> Self {
                Self { $( $field: $crate::codec::Field::sample(source), )* }
            }
        }

        impl $crate::Family for $crate::table::borrowed!($name, 'static $(, $life)?) {
            const ID: $crate::MessageId = $id;
            const DIRECTION: $crate::Direction = $direction;
            type Of<'r> = $crate::table::borrowed!($name, 'r $(, $life)?);
        }
    };
}

/// A type borrowed for the lifetime given, where the row says that it borrows at all.
macro_rules! borrowed {
    ($($name:ident)::+, $for:lifetime) => { $($name)::+ };
    ($($name:ident)::+, $for:lifetime, $life:lifetime) => { $($name)::+<$for> };
}

/// Reads a field; one that a later version added may be missing.
macro_rules! read_field {
    ($reader:ident, $name:expr) => {
        $reader.field($name)
    };
    ($reader:ident, $name:expr, $later:literal) => {
        $reader.field_or_default($name)
    };
}

/// The version a field came with: its own, or else its message's.
macro_rules! since {
    ($message:literal) => {
        $crate::ProtocolVersion::parse(stringify!($message))
    };
    ($message:literal, $field:literal) => {
        $crate::ProtocolVersion::parse(stringify!($field))
    };
}

/// The method's name where it is not the row's in camel case.
macro_rules! label {
    ($method:ident) => {
        None
    };
    ($method:ident, $label:literal) => {
        Some($label)
    };
}

/// The messages of one service. A row reads
///
/// ```text
/// method = id, since version, retryable: bool, partition: Partitioning {
///     request<'a> { field: type, .. }
///     response { #[since(version)] field: type, .. }
///     event NameEvent = id, since version <'a> { .. }
/// }
/// ```
///
/// and becomes a module `method` with the structs `Request`, `Response` and `NameEvent`, the constants `ID`,
/// `RESPONSE_ID` and the row's `SPEC`.
macro_rules! service {
    (
        $service:ident = $service_id:literal;
        $(
            $method:ident $($label:literal)? = $method_id:literal, since $since:literal,
            retryable: $retryable:literal, partition: $partition:ident {
                request $(<$request_life:lifetime>)? { $($request:tt)* }
                response $(<$response_life:lifetime>)? { $($response:tt)* }
                $(
                    event $event:ident = $event_id:literal, since $event_since:literal
                    $(<$event_life:lifetime>)? { $($event_fields:tt)* }
                )*
            }
        )*
    ) => {
        $(
            #[doc = concat!("`", stringify!($service), ".", stringify!($method), "`, since version ", stringify!($since), ".")]
            pub mod $method {
                #[allow(unused_imports, reason = "not every message has fields of each type")]
                use $crate::{Data, Uuid, sql_page::SqlPage, structure::*};

                /// The request's id.
                pub const ID: $crate::MessageId = $crate::MessageId::request($service_id, $method_id);
                /// The response's id.
                pub const RESPONSE_ID: $crate::MessageId = ID.part(1);

                $crate::table::payload! {
                    concat!("Asks for `", stringify!($service), ".", stringify!($method), "`."),
                    Request $($request_life)?, ID, $crate::Direction::Request, $since { $($request)* }
                }
                $crate::table::payload! {
                    concat!("Answers `", stringify!($service), ".", stringify!($method), "`."),
                    Response $($response_life)?, RESPONSE_ID, $crate::Direction::Response, $since { $($response)* }
                }
                $(
                    $crate::table::payload! {
                        concat!("Sent to those who registered by `", stringify!($service), ".", stringify!($method), "`."),
                        $event $($event_life)?, ID.part($event_id), $crate::Direction::Event, $event_since { $($event_fields)* }
                    }

                    impl<'a> $crate::Event for $event $(<$event_life>)? {
                        const ID: $crate::MessageId = <Self as $crate::Payload<'a>>::ID;

                        #[inline]
                        fn encode(&self, correlation: $crate::CorrelationId, partition: i32, out: &mut Vec<u8>) {
                            $crate::encode::<Self>(self, correlation, partition, out);
                        }
                    }
                )*

                impl<'a> $crate::Request for Request $(<$request_life>)? {
                    const ID: $crate::MessageId = ID;
                    const SPEC: &'static $crate::MessageSpec = &SPEC;
                    type Response<'r> = $crate::table::borrowed!(Response, 'r $(, $response_life)?);

                    #[inline]
                    fn encode(&self, correlation: $crate::CorrelationId, partition: i32, out: &mut Vec<u8>) {
                        $crate::encode::<Self>(self, correlation, partition, out);
                    }
                }

                impl<'a> $crate::Response for Response $(<$response_life>)? {
                    const ID: $crate::MessageId = RESPONSE_ID;

                    #[inline]
                    fn encode(&self, correlation: $crate::CorrelationId, out: &mut Vec<u8>) {
                        $crate::encode::<Self>(self, correlation, -1, out);
                    }
                }

                /// The row of the table.
                pub static SPEC: $crate::MessageSpec = $crate::MessageSpec {
                    service: stringify!($service),
                    method: stringify!($method),
                    label: $crate::table::label!($method $(, $label)?),
                    id: ID,
                    since: $crate::table::since!($since),
                    retryable: $retryable,
                    partition: $crate::Partitioning::$partition,
                    request: <$crate::table::borrowed!(Request, 'static $(, $request_life)?) as $crate::Payload<'static>>::FIELDS,
                    response: <$crate::table::borrowed!(Response, 'static $(, $response_life)?) as $crate::Payload<'static>>::FIELDS,
                    events: &[$(
                        $crate::EventSpec {
                            name: stringify!($event),
                            id: ID.part($event_id),
                            since: $crate::table::since!($event_since),
                            fields: <$crate::table::borrowed!($event, 'static $(, $event_life)?) as $crate::Payload<'static>>::FIELDS,
                        },
                    )*],
                };
            }
        )*

        /// The service and its messages, by id.
        pub static SERVICE: $crate::ServiceSpec = $crate::ServiceSpec {
            name: stringify!($service),
            id: $service_id,
            messages: &[$( &$method::SPEC, )*],
        };

        /// Shows every message of the service to `visitor`.
        #[inline]
        pub fn visit_all<V: $crate::table::Visitor>(visitor: &mut V) {
            $(
                visitor.visit::<$crate::table::borrowed!($method::Request, 'static $(, $request_life)?)>();
                visitor.visit::<$crate::table::borrowed!($method::Response, 'static $(, $response_life)?)>();
                $(
                    visitor.visit::<$crate::table::borrowed!($method::$event, 'static $(, $event_life)?)>();
                )*
            )*
        }
    };
}

pub(crate) use {borrowed, label, payload, read_field, service, since};
