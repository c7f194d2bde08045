//! Structures: values with several fields. One table, divided into files by subject.
//!
//! A structure consists of a BEGIN frame, one frame of its fixed fields, if it has any, its other
//! fields, and an END frame. Fields that a newer peer adds before the END frame are skipped.
//!
//! Fields have the names and units of the protocol. `type` is called `kind`, because `type` is a
//! keyword of Rust.

mod cluster;
mod config;
mod data;
mod sql;
mod wan;

pub use cluster::*;
pub use config::*;
pub use data::*;
pub use sql::*;
pub use wan::*;

/// Defines structures of the protocol as rows of a table: name, first protocol version, and fields
/// in wire order. `#[since(v)]` marks a field that version v added to an existing structure.
macro_rules! structure {
    ($(
        $name:ident $(<$life:lifetime>)?, since $since:literal {
            $( $(#[since($later:literal)])? $field:ident : $type:ty ),* $(,)?
        }
    )*) => {$(
        #[doc = concat!("`", stringify!($name), "` of the protocol, since version ", stringify!($since), ".")]
        #[derive(Clone, Debug, Default, PartialEq)]
        #[allow(missing_docs, reason = "the fields carry the protocol's names")]
        pub struct $name $(<$life>)? {
            $( pub $field: $type, )*
        }

        impl<'a> $crate::codec::Field<'a> for $name $(<$life>)? {
            #[inline]
            fn put_variable(&self, writer: &mut $crate::codec::Writer<'_>) {
                let has_fixed = (0 $( + <$type as $crate::codec::Field<'a>>::FIXED_BYTES )*) > 0;
                writer.begin();
                if has_fixed {
                    writer.frame_with(0, |out| {
                        $( $crate::codec::Field::put_fixed(&self.$field, out); )*
                    });
                }
                $( $crate::codec::Field::put_variable(&self.$field, writer); )*
                writer.end();
            }

            #[inline]
            fn read(reader: &mut $crate::codec::Reader<'a>) -> Result<Self, $crate::codec::Fault> {
                let has_fixed = (0 $( + <$type as $crate::codec::Field<'a>>::FIXED_BYTES )*) > 0;
                let outer = reader.enter(has_fixed)?;
                let value = Self {
                    $( $field: $crate::codec::read_field!(reader, stringify!($field) $(, $later)?)?, )*
                };
                reader.leave(outer)?;
                Ok(value)
            }

            #[inline]
            fn sample(source: &mut $crate::sample::Source<'a>) -> Self {
                Self { $( $field: $crate::codec::Field::sample(source), )* }
            }
        }

        impl<'a> $crate::codec::Variable<'a> for $name $(<$life>)? {}
    )*};
}
pub(crate) use structure;
