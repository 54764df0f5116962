//! One-byte codes. A code that this version does not know stays what it is, so that a newer file
//! can be read, counted and copied.

macro_rules! codes {
    ($(#[$doc:meta])* $name:ident { $($(#[$code_doc:meta])* $code:ident = $value:literal $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
        #[repr(transparent)]
        pub struct $name(pub u8);

        impl $name {
            $($(#[$code_doc])* pub const $code: Self = Self($value);)*

            /// Every code known to this version.
            pub const KNOWN: &'static [Self] = &[$(Self::$code),*];

            /// The code's name in every output; `None` for one that this version does not know.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use codes;

codes! {
    /// What a step does.
    Phase {
        /// A training update.
        TRAIN = 1 "train",
        /// An inference invocation.
        INFER = 2 "infer",
    }
}

codes! {
    /// The part of a training step that a span covers; 0 is none of them.
    ExecutionStep {
        /// Forward.
        FORWARD = 1 "forward",
        /// Backward.
        BACKWARD = 2 "backward",
        /// Optimizer.
        OPTIMIZER = 3 "optimizer",
    }
}

codes! {
    /// What a span stands for.
    SpanKind {
        /// A function or a region of code.
        FUNCTION = 1 "function",
        /// One operation.
        OP = 2 "op",
        /// A module of the model.
        MODULE = 3 "module",
    }
}

codes! {
    /// What a tensor or an allocation is for.
    Category {
        /// A trained parameter.
        PARAMETER = 1 "parameter",
        /// An activation.
        ACTIVATION = 2 "activation",
        /// A gradient.
        GRADIENT = 3 "gradient",
        /// State of the optimizer.
        OPTIMIZER = 4 "optimizer",
        /// Anything else.
        OTHER = 5 "other",
    }
}

codes! {
    /// What became of a parameter's gradient.
    GradientState {
        /// Finite and not zero.
        PRESENT = 1 "present",
        /// There is none.
        MISSING = 2 "missing",
        /// It is there and exactly zero.
        ZERO = 3 "zero",
        /// It, or its norm, holds NaN or infinity.
        NON_FINITE = 4 "non_finite",
    }
}

codes! {
    /// What an edge connects.
    EdgeKind {
        /// Two spans.
        CALL = 1 "call",
        /// Two tensors.
        DATA = 2 "data",
        /// Two named nodes.
        STATIC = 3 "static",
    }
}

codes! {
    /// Who asked for a level.
    LevelSource {
        /// The start of the recording.
        START = 1 "start",
        /// The application.
        APPLICATION = 2 "application",
        /// An attached tool.
        ATTACH = 3 "attach",
        /// A breakpoint.
        BREAKPOINT = 4 "breakpoint",
    }
}

codes! {
    /// Element types. Codes below 128 are fixed here; a file defines the others in its frames; 255
    /// is one that found no code.
    DType {
        /// Boolean, one byte.
        BOOL = 1 "bool",
        /// Unsigned, 8 bits.
        U8 = 2 "u8",
        /// Signed, 8 bits.
        I8 = 3 "i8",
        /// Unsigned, 16 bits.
        U16 = 4 "u16",
        /// Signed, 16 bits.
        I16 = 5 "i16",
        /// Unsigned, 32 bits.
        U32 = 6 "u32",
        /// Signed, 32 bits.
        I32 = 7 "i32",
        /// Unsigned, 64 bits.
        U64 = 8 "u64",
        /// Signed, 64 bits.
        I64 = 9 "i64",
        /// IEEE half.
        F16 = 10 "f16",
        /// Brain float, 16 bits.
        BF16 = 11 "bf16",
        /// IEEE single.
        F32 = 12 "f32",
        /// IEEE double.
        F64 = 13 "f64",
        /// 8-bit float, 4 exponent and 3 mantissa bits.
        F8E4M3 = 14 "f8e4m3",
        /// 8-bit float, 5 exponent and 2 mantissa bits.
        F8E5M2 = 15 "f8e5m2",
        /// 8-bit exponent-only scale.
        F8E8M0 = 16 "f8e8m0",
        /// 6-bit float, 2 exponent and 3 mantissa bits.
        F6E2M3 = 17 "f6e2m3",
        /// 6-bit float, 3 exponent and 2 mantissa bits.
        F6E3M2 = 18 "f6e3m2",
        /// 4-bit float.
        F4 = 19 "f4",
        /// A type that found no code.
        OTHER = 255 "other",
    }
}

codes! {
    /// Devices. 0 is unknown; a file defines 1 to 254 in its frames.
    DeviceCode {
        /// A device that found no code.
        OTHER = 255 "other",
    }
}

codes! {
    /// Device clocks. 0 is unknown; a file defines 1 to 254 in its frames.
    ClockCode {
        /// A clock that found no code.
        OTHER = 255 "other",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_code_has_a_name_of_its_own_and_0_has_none() {
        let names: Vec<_> = DType::KNOWN.iter().filter_map(|code| code.name()).collect();
        let mut distinct = names.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!((names.len(), distinct.len()), (DType::KNOWN.len(), DType::KNOWN.len()));
        assert_eq!(DType(0).name(), None);
        assert!(DType::KNOWN.iter().all(|code| code.0 < 128 || *code == DType::OTHER));
    }
}
