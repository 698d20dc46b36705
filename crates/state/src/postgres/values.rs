//! Values of statements, with the types that they have in PostgreSQL: a statement whose types are known
//! can be sent with its values at once, before it is prepared.

use tokio_postgres::types::{ToSql, Type};

/// A value of a statement.
pub(super) trait Value: ToSql + Sync {
    fn kind(&self) -> Type;

    fn as_sql(&self) -> &(dyn ToSql + Sync);
}

impl<T: Kind + ToSql + Sync> Value for T {
    fn kind(&self) -> Type {
        T::KIND
    }

    fn as_sql(&self) -> &(dyn ToSql + Sync) {
        self
    }
}

/// A type that is always the same one in PostgreSQL.
pub(super) trait Kind {
    const KIND: Type;
}

/// One of which there are lists.
pub(super) trait Element: Kind {
    const LIST: Type;
}

macro_rules! kinds {
    ($($rust:ty: $kind:ident, $list:ident;)+) => {
        $(impl Kind for $rust {
            const KIND: Type = Type::$kind;
        }
        impl Element for $rust {
            const LIST: Type = Type::$list;
        })+
    };
}

kinds! {
    bool: BOOL, BOOL_ARRAY;
    i16: INT2, INT2_ARRAY;
    i32: INT4, INT4_ARRAY;
    i64: INT8, INT8_ARRAY;
    f64: FLOAT8, FLOAT8_ARRAY;
    str: TEXT, TEXT_ARRAY;
    String: TEXT, TEXT_ARRAY;
    Vec<u8>: BYTEA, BYTEA_ARRAY;
    [u8]: BYTEA, BYTEA_ARRAY;
}

impl<T: Kind> Kind for Option<T> {
    const KIND: Type = T::KIND;
}

impl<T: Element> Element for Option<T> {
    const LIST: Type = T::LIST;
}

impl<T: Kind + ?Sized> Kind for &T {
    const KIND: Type = T::KIND;
}

impl<T: Element + ?Sized> Element for &T {
    const LIST: Type = T::LIST;
}

impl<T: Element> Kind for Vec<T> {
    const KIND: Type = T::LIST;
}

impl<T: Element> Kind for [T] {
    const KIND: Type = T::LIST;
}
