//! The macro that generates the type of a message and its codec, [`Payload`](crate::Payload), from
//! the fields.

/// Generates the struct of one message and its implementation of [`Payload`](crate::Payload).
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
                    since: $crate::payload::since!($since $(, $later)?),
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
                Ok(Self { $( $field: $crate::codec::read_field!(reader, stringify!($field) $(, $later)?)?, )* })
            }

            #[inline]
            #[allow(unused_variables, reason = "a message may have no fields")]
            fn sample(source: &mut $crate::sample::Source<'a>) -> Self {
                Self { $( $field: $crate::codec::Field::sample(source), )* }
            }
        }

        impl $crate::Family for $crate::payload::borrowed!($name, 'static $(, $life)?) {
            const ID: $crate::MessageId = $id;
            const DIRECTION: $crate::Direction = $direction;
            type Of<'r> = $crate::payload::borrowed!($name, 'r $(, $life)?);
        }
    };
}

/// A type with the given lifetime, if the row declares a lifetime.
macro_rules! borrowed {
    ($($name:ident)::+, $for:lifetime) => { $($name)::+ };
    ($($name:ident)::+, $for:lifetime, $life:lifetime) => { $($name)::+<$for> };
}

/// The first version of a field: its own version, if given, otherwise the version of its message.
macro_rules! since {
    ($message:literal) => {
        $crate::ProtocolVersion::parse(stringify!($message))
    };
    ($message:literal, $field:literal) => {
        $crate::ProtocolVersion::parse(stringify!($field))
    };
}

pub(crate) use {borrowed, payload, since};
