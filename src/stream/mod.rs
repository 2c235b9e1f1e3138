//! What lives between frames: the cache of keys and values, and the stream of frames through the network.

mod cache;
mod cameras;
mod config;
mod gct_stream;
mod heads;
mod keyframe;
mod layout;
mod memory;
mod step;
mod thinning;
mod watch;
mod window;

pub use cache::{CacheError, CacheStatus, KvCache};
pub use cameras::{CameraLayout, CameraPlan};
pub use config::StreamConfig;
pub use gct_stream::{FrameType, GctStream, Prediction, StreamError};
pub use keyframe::{KeyframeInterval, KeyframeRule, TRAINED_VIEWS, Verdict};
pub use layout::{CacheLayout, CacheRules, FrameRole, RowMove, StepPlan};
pub use memory::{BudgetError, MemoryBudget, MemoryItem, MemoryPlan, MemoryRequest};
pub use step::{StepError, StepRunner};
pub use watch::{CollapseWatch, Symptom};
pub use window::{OnCollapse, WindowAlignment, WindowConfig, WindowPlan, WindowedStream};
