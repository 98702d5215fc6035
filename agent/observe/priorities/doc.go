// Package priorities watches the ConfigMap of Cluster Autoscaler's priority expander,
// cluster-autoscaler-priority-expander. Watch.Current returns the priorities in force;
// Read reads them once, for a command that watches nothing.
//
// The package refuses an invalid version as a whole: the last valid one stays in force,
// and the fault is logged once and written as an Event. It refuses to make the agent wait
// for a ConfigMap that does not exist or may not be read.
package priorities
