//! Functions of a library that was opened at run time, as a table of pointers.

/// Declares a table of functions, each with the symbol that it is looked up by, and how the table is
/// filled. The library must stay open for as long as the table is used.
macro_rules! symbols {
    ($(#[$doc:meta])* struct $table:ident {
        $($(#[$field_doc:meta])* $field:ident = $symbol:literal: $kind:ty;)*
    }) => {
        $(#[$doc])*
        struct $table {
            $($(#[$field_doc])* $field: $kind,)*
        }

        impl $table {
            fn of(library: &libloading::Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    $($field: {
                        // SAFETY: the field has the type that the library's public headers declare
                        // for this name.
                        *unsafe { library.get::<$kind>(concat!($symbol, "\0")) }?
                    },)*
                })
            }
        }
    };
}

pub(crate) use symbols;
