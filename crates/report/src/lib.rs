//! One page of figures from the results of benches and measurements. It holds its style, its drawings
//! and its data, and loads nothing from elsewhere.
#![forbid(unsafe_code)]

mod amounts;
mod at;
mod blocks;
mod compared;
pub mod date;
mod document;
mod energy;
mod figure;
mod html;
mod kinds;
mod machine;
mod measure;
mod page;
mod papers;
mod printed;
mod reading;
pub mod results;
mod sample;
mod schema;
mod simulated;
mod simulation;
mod svg;
mod table;

pub use document::Document;
pub use page::page;
pub use papers::Papers;
