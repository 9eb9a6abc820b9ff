//! Records of TLS 1.0 to 1.2 under CBC, where the MAC lies under the cipher (RFC 5246, section
//! 6.2.3.2): sealed on the kernel that fits their number, opened in constant time.

mod open;
mod seal;
mod work;

pub use open::{unpad, verify};
pub(crate) use seal::seal_records;
pub use seal::{SealKernel, SealRecord, seal_records_with};
pub use work::Seal;
