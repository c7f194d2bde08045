//! The macros that generate a service, its messages and their specifications from rows of the
//! table.

/// The name of the method in the protocol, if it is not the name of the row in camel case.
macro_rules! label {
    ($method:ident) => {
        None
    };
    ($method:ident, $label:literal) => {
        Some($label)
    };
}

/// Defines the messages of one service. The format of a row:
///
/// ```text
/// method = id, since version, retryable: bool, partition: Partitioning {
///     request<'a> { field: type, .. }
///     response { #[since(version)] field: type, .. }
///     event NameEvent = id, since version <'a> { .. }
/// }
/// ```
///
/// A row generates a module `method` with the structs `Request`, `Response` and `NameEvent`, the
/// constants `ID` and `RESPONSE_ID`, and the row `SPEC`.
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

                $crate::payload::payload! {
                    concat!("Asks for `", stringify!($service), ".", stringify!($method), "`."),
                    Request $($request_life)?, ID, $crate::Direction::Request, $since { $($request)* }
                }
                $crate::payload::payload! {
                    concat!("Answers `", stringify!($service), ".", stringify!($method), "`."),
                    Response $($response_life)?, RESPONSE_ID, $crate::Direction::Response, $since { $($response)* }
                }
                $(
                    $crate::payload::payload! {
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
                    type Response<'r> = $crate::payload::borrowed!(Response, 'r $(, $response_life)?);

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
                    since: $crate::payload::since!($since),
                    retryable: $retryable,
                    partition: $crate::Partitioning::$partition,
                    request: <$crate::payload::borrowed!(Request, 'static $(, $request_life)?) as $crate::Payload<'static>>::FIELDS,
                    response: <$crate::payload::borrowed!(Response, 'static $(, $response_life)?) as $crate::Payload<'static>>::FIELDS,
                    events: &[$(
                        $crate::EventSpec {
                            name: stringify!($event),
                            id: ID.part($event_id),
                            since: $crate::payload::since!($event_since),
                            fields: <$crate::payload::borrowed!($event, 'static $(, $event_life)?) as $crate::Payload<'static>>::FIELDS,
                        },
                    )*],
                };
            }
        )*

        /// The service and its messages, ordered by id.
        pub static SERVICE: $crate::ServiceSpec = $crate::ServiceSpec {
            name: stringify!($service),
            id: $service_id,
            messages: &[$( &$method::SPEC, )*],
        };

        /// Calls `visitor` for every message of the service.
        #[inline]
        pub fn visit_all<V: $crate::table::Visitor>(visitor: &mut V) {
            $(
                visitor.visit::<$crate::payload::borrowed!($method::Request, 'static $(, $request_life)?)>();
                visitor.visit::<$crate::payload::borrowed!($method::Response, 'static $(, $response_life)?)>();
                $(
                    visitor.visit::<$crate::payload::borrowed!($method::$event, 'static $(, $event_life)?)>();
                )*
            )*
        }
    };
}

pub(crate) use {label, service};
