package nova

import (
	"errors"
	"fmt"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/nova/section"
)

// Config is read from AUTOSCALER_NOVA_* (envconfig). How OpenStack is reached is
// openstack.Config's; the groups are in the section "nova" of groups.yaml.
type Config struct {
	// ClusterName is written into the metadata of every server: only servers with this
	// very name are ours. The section's "cluster" comes before it.
	ClusterName string `split_words:"true" pattern:"[A-Za-z0-9._-]{1,40}" write:"at most 40 letters, digits, dots, dashes and underscores, for example production" desc:"Name in the metadata of the cluster's servers; the field cluster of groups.yaml comes before it."`
	// VMMemoryOverheadPercent is the part of a flavor's memory that firmware and kernel
	// keep from the kubelet (3 to 6 % of machines of 2 to 8 GiB). It is kept back from
	// what is allocatable until a real node of the same template has been seen; the
	// capacity is the flavor's own number.
	VMMemoryOverheadPercent float64 `split_words:"true" default:"5" range:"0..<50" desc:"Share of a flavor's memory that never reaches the kubelet, until a real node has shown it."`
	// ParallelCreates is how many servers are asked for at once.
	ParallelCreates int `split_words:"true" default:"5" range:"1..50" desc:"How many servers are asked for at once."`
}

// Validate returns every mistake of the configuration, joined.
func (c Config) Validate() error {
	var errs []error
	if c.ClusterName != "" && !section.IsClusterName(c.ClusterName) {
		errs = append(errs, fmt.Errorf("AUTOSCALER_NOVA_CLUSTER_NAME: %q: write at most 40 letters, digits, dots, dashes and underscores, for example production", c.ClusterName))
	}
	if c.VMMemoryOverheadPercent < 0 || c.VMMemoryOverheadPercent >= 50 {
		errs = append(errs, fmt.Errorf("AUTOSCALER_NOVA_VM_MEMORY_OVERHEAD_PERCENT: %g: write a share from 0 to 50, for example 5", c.VMMemoryOverheadPercent))
	}
	if c.ParallelCreates < 1 || c.ParallelCreates > 50 {
		errs = append(errs, fmt.Errorf("AUTOSCALER_NOVA_PARALLEL_CREATES: %d: write a number from 1 to 50", c.ParallelCreates))
	}
	return errors.Join(errs...)
}
