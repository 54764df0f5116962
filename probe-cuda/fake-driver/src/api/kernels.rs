//! Kernels, which take their time and do nothing.

use std::ffi::{c_char, c_uint, c_void};

use super::{Pointer, api};
use crate::code::SUCCESS;
use crate::state::put;

api! {
    fn cuModuleLoadData(state, module: *mut Pointer, _image: *const c_void) {
        let handle = state.handle();
        put(module, handle as Pointer)
    }

    fn cuModuleUnload(_state, _module: Pointer) {
        SUCCESS
    }

    fn cuModuleGetFunction(state, function: *mut Pointer, _module: Pointer, _name: *const c_char) {
        let handle = state.handle();
        put(function, handle as Pointer)
    }

    fn cuLaunchKernel(
        state,
        _function: Pointer,
        _grid_x: c_uint,
        _grid_y: c_uint,
        _grid_z: c_uint,
        _block_x: c_uint,
        _block_y: c_uint,
        _block_z: c_uint,
        _shared: c_uint,
        stream: Pointer,
        _parameters: *mut Pointer,
        _extra: *mut Pointer,
    ) {
        let ns = state.config.kernel_ns;
        state.submit(stream as usize, ns).err().unwrap_or(SUCCESS)
    }
}
