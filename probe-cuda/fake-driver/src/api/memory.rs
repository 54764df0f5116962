//! Device memory.

use super::{Pointer, api};
use crate::code::{INVALID_VALUE, SUCCESS};
use crate::state::put;

/// What the device has.
const CAPACITY: usize = 1 << 34;

api! {
    fn cuMemGetInfo_v2(state, free: *mut usize, total: *mut usize) {
        let broken = state.unsafe_call();
        if broken != SUCCESS {
            return broken;
        }
        let used: usize = state.memory.values().map(|memory| memory.len()).sum();
        put(free, CAPACITY - used);
        put(total, CAPACITY)
    }

    fn cuMemAllocAsync(state, address: *mut u64, bytes: usize, _stream: Pointer) {
        let memory = vec![0_u8; bytes.max(1)].into_boxed_slice();
        let at = memory.as_ptr() as u64;
        state.memory.insert(at, memory);
        put(address, at)
    }

    fn cuMemFreeAsync(state, address: u64, _stream: Pointer) {
        match state.memory.remove(&address) {
            Some(_) => SUCCESS,
            None => INVALID_VALUE,
        }
    }
}
