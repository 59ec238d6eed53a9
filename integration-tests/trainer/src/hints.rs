//! Tells phos-ft the end of each step, where it looks after this process.

use std::ffi::c_int;

/// `phos_ft_step` of the shim.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hints(Option<extern "C" fn(u64) -> c_int>);

impl Hints {
    /// Looks for the shim, as `shim/include/phos_ft.h` does.
    pub fn new(wanted: bool) -> Hints {
        if !wanted {
            return Hints(None);
        }
        // SAFETY: a terminated name.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"phos_ft_step".as_ptr()) };
        if found.is_null() {
            return Hints(None);
        }
        // SAFETY: the function of that name has this type, by the header.
        Hints(Some(unsafe {
            std::mem::transmute::<*mut libc::c_void, extern "C" fn(u64) -> c_int>(found)
        }))
    }

    /// The step of this number has ended.
    pub fn step(self, step: u64) {
        if let Hints(Some(tell)) = self {
            tell(step);
        }
    }
}
