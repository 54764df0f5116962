//! Which invocation is captured.

/// Selects one invocation for capture, counted from one.
///
/// It is asked before a session is opened, so that the invocations that are not selected open no file
/// and record nothing:
///
/// ```
/// use tmrun_probe_core::session::CaptureSelector;
///
/// let selector = CaptureSelector::new(3)?;
/// let captured: Vec<u64> = (1..=5).filter(|update| selector.is_selected(*update)).collect();
/// assert_eq!(captured, [3]);
/// assert!(CaptureSelector::new(0).is_err(), "the first is 1");
/// # Ok::<(), tmrun_probe_core::session::ZeroInvocation>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureSelector {
    selected: u64,
}

impl CaptureSelector {
    /// Selects this invocation.
    ///
    /// # Errors
    ///
    /// When it is 0: the first is 1.
    pub const fn new(selected: u64) -> Result<Self, ZeroInvocation> {
        if selected == 0 { Err(ZeroInvocation) } else { Ok(Self { selected }) }
    }

    /// Whether it is this one.
    #[inline]
    pub const fn is_selected(self, invocation: u64) -> bool {
        invocation == self.selected
    }

    /// The invocation that is selected.
    pub const fn selected_invocation(self) -> u64 {
        self.selected
    }
}

/// Invocation 0 was selected, and they are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZeroInvocation;

impl std::fmt::Display for ZeroInvocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("invocation 0 is selected for capture: they are counted from 1")
    }
}

impl std::error::Error for ZeroInvocation {}
