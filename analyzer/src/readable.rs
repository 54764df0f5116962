//! Numbers for people.

/// A number with its thousands apart.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut shown = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && digits.len().wrapping_sub(i) % 3 == 0 {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// A length of time, in the unit that suits it.
pub fn duration(ns: f64) -> String {
    let (unit, scale) = match ns {
        ns if ns < 1e3 => ("ns", 1.0),
        ns if ns < 1e6 => ("us", 1e3),
        ns if ns < 1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    let scaled = ns / scale;
    match scaled {
        s if s >= 100.0 => format!("{s:.0} {unit}"),
        s if s >= 10.0 => format!("{s:.1} {unit}"),
        s => format!("{s:.2} {unit}"),
    }
}

/// A number and its noun: `1 chunk`, `2 chunks`.
pub fn plural(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", number(n), if n == 1 { "" } else { "s" })
}
