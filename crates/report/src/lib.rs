//! One page of figures from the results of benches and measurements. It holds its style, its drawings
//! and its data, and loads nothing from elsewhere.
#![forbid(unsafe_code)]

mod amounts;
mod blocks;
mod build;
pub mod columns;
mod compared;
pub mod date;
mod document;
mod energy;
mod figure;
mod html;
mod kinds;
mod load;
mod machine;
pub mod measure;
mod merge;
mod page;
pub mod paper;
mod parse;
mod reading;
pub mod results;
mod sample;
mod schema;
mod simulated;
pub mod simulation;
mod svg;
mod table;

pub use document::Document;
pub use merge::Merged;
pub use page::page;
