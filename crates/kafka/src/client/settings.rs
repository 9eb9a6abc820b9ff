//! From where to where a topic is mirrored.

use super::cluster::Cluster;

/// From where to where.
pub struct Settings {
    /// The cluster of the source.
    pub from: Cluster,
    /// The source.
    pub from_topic: String,
    /// The cluster of the target.
    pub to: Cluster,
    /// The target.
    pub to_topic: String,
    /// True if both are one cluster: records and offsets are committed in one transaction then.
    pub is_same_cluster: bool,
    /// The consumer group, whose members share the partitions.
    pub group: String,
    /// The name of this process in the group, the same after a restart.
    pub id: String,
    /// End when all is done that was in the source at the start.
    pub until_end: bool,
}
