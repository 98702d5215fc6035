package nova

import (
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

func TestConfig(t *testing.T) {
	err := Config{ClusterName: "a b", VMMemoryOverheadPercent: 60}.Validate()
	for _, name := range []string{"AUTOSCALER_NOVA_CLUSTER_NAME", "AUTOSCALER_NOVA_VM_MEMORY_OVERHEAD_PERCENT", "AUTOSCALER_NOVA_PARALLEL_CREATES"} {
		if err == nil || !strings.Contains(err.Error(), name+":") {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	if err := (Config{ClusterName: "a", ParallelCreates: 5}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestServerIDs(t *testing.T) {
	const want = "8c8c6c3c-4f0e-4b52-9d0c-3f1d7f3a6a1b"
	for _, id := range []string{"openstack:///" + want, "openstack://RegionOne/" + want, "openstack://" + want, "openstack:///" + strings.ToUpper(want), "openstack:///8c8c6c3c4f0e4b529d0c3f1d7f3a6a1b"} {
		if got := serverID(cluster.InstanceID(id)); got != want {
			t.Errorf("%s: %q", id, got)
		}
	}
	for _, id := range []string{"", "nonsense", "aws:///zone/i-1", "openstack:///", "openstack:///workers-1", want} {
		if got := serverID(cluster.InstanceID(id)); got != "" {
			t.Errorf("%s is taken for %s", id, got)
		}
	}
}
