//! A large variable of a module: memory that the driver takes when it loads the module, and saves by itself. Its first and last
//! words are written anew in each step, from what they were, and part of the losses.

use std::ffi::CString;

use anyhow::{Context, Result};
use cudarc::driver::sys::CUmodule;

use crate::cuda::{Buffer, cu};
use crate::rng::mix;

/// See the module.
#[derive(Debug)]
pub(crate) struct Variable {
    module: CUmodule,
    /// Addresses of the words.
    words: [u64; 2],
}

impl Variable {
    pub(crate) fn load(mib: usize) -> Result<Self> {
        let (module, Buffer { ptr, bytes }) = module_with_variable(mib << 20)?;
        Ok(Self {
            module,
            words: [ptr, ptr + bytes as u64 - 8],
        })
    }

    pub(crate) fn step(&mut self, step: u64) -> Result<u64> {
        let mut all = 0;
        for (i, at) in (0..).zip(self.words) {
            let mut word = 0_u64;
            cu!(cuMemcpyDtoH_v2((&raw mut word).cast(), at, 8))?;
            word = mix(word ^ step);
            cu!(cuMemcpyHtoD_v2(at, (&raw const word).cast(), 8))?;
            all ^= word.rotate_left(i);
        }
        Ok(mix(all))
    }

    pub(crate) fn finish(self) -> Result<()> {
        Ok(cu!(cuModuleUnload(self.module))?)
    }
}

/// Loads a module that has nothing but a variable of so many bytes.
pub(crate) fn module_with_variable(bytes: usize) -> Result<(CUmodule, Buffer)> {
    let text = format!(
        ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 8 .b8 large[{bytes}];\n"
    );
    let image = CString::new(text)?;
    let mut module = std::ptr::null_mut();
    cu!(cuModuleLoadData(&mut module, image.as_ptr().cast()))
        .with_context(|| format!("loading a module with {bytes} bytes of variables"))?;
    let mut variable = Buffer { ptr: 0, bytes: 0 };
    cu!(cuModuleGetGlobal_v2(
        &mut variable.ptr,
        &mut variable.bytes,
        module,
        c"large".as_ptr()
    ))?;
    Ok((module, variable))
}
