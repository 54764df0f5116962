//! The bytes of a tensor whose elements lie side by side.

/// Bytes of an element of this type; `None` for a type that the format does not know.
#[must_use]
pub fn dtype_bytes(dtype: &str) -> Option<u64> {
    const BYTES: [(u64, &[&str]); 4] = [
        (1, &["u8", "i8", "bool", "f8"]),
        (2, &["u16", "i16", "f16", "bf16"]),
        (4, &["u32", "i32", "f32"]),
        (8, &["u64", "i64", "f64"]),
    ];
    let dtype = dtype.trim();
    let known = |names: &[&str]| names.iter().any(|name| name.eq_ignore_ascii_case(dtype));
    BYTES.iter().find(|(_, names)| known(names)).map(|&(bytes, _)| bytes)
}

/// Bytes of a tensor of this shape and type; `u64::MAX` when there are more.
#[must_use]
pub fn dense_bytes(shape: &[u64], dtype: &str) -> Option<u64> {
    let bytes = dtype_bytes(dtype)?;
    Some(
        shape
            .iter()
            .fold(1, |product: u64, &dim| product.saturating_mul(dim))
            .saturating_mul(bytes),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_known_in_any_case_and_with_space_around_it() {
        assert_eq!(dtype_bytes(" BF16\t"), Some(2));
        assert_eq!(dtype_bytes("f8e4m3"), None);
        assert_eq!(dtype_bytes(""), None);
    }

    #[test]
    fn a_scalar_has_one_element_and_a_product_stays_at_the_end_of_its_range() {
        assert_eq!(dense_bytes(&[], "f32"), Some(4));
        assert_eq!(dense_bytes(&[3, 0], "f32"), Some(0));
        assert_eq!(dense_bytes(&[u64::MAX, 2], "u8"), Some(u64::MAX));
        assert_eq!(dense_bytes(&[u64::MAX / 2], "f64"), Some(u64::MAX));
        assert_eq!(dense_bytes(&[u64::MAX, 2, 0], "u8"), Some(0));
        assert_eq!(dense_bytes(&[2], "q4"), None);
    }
}
