//! Floats on their way into JSON, which has no word for NaN and the infinities.

use serde::ser::Error;
use serde::{Serialize, Serializer};

/// Writes a finite number; any other is an error, where serde would make it a `null` that no reader takes.
pub(crate) fn write<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64(*value)
    } else {
        Err(S::Error::custom(format_args!("expected a finite number, found {value}")))
    }
}

/// [`write()`], or `null` for none.
pub(crate) fn write_option<S: Serializer>(
    value: &Option<f64>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    struct Finite(f64);

    impl Serialize for Finite {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            write(&self.0, serializer)
        }
    }

    value.map(Finite).serialize(serializer)
}
