package clusterapi

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/agent/provider/clusterapi/capi"
)

func aMachine(t *testing.T, raw string) *capi.Machine {
	t.Helper()
	m := &capi.Machine{}
	if err := json.Unmarshal([]byte(raw), m); err != nil {
		t.Fatal(err)
	}
	if m.Name == "" {
		m.Namespace, m.Name, m.UID = "ns", "m-1", "uid-1"
	}
	return m
}

func TestMachinePhases(t *testing.T) {
	for raw, want := range map[string]struct {
		phase cluster.Phase
		id    cluster.InstanceID
		cause cluster.Cause
	}{
		`{}`:                                  {cluster.PhasePending, "pending-machine-ns_m-1", ""},
		`{"status":{"phase":"Pending"}}`:      {cluster.PhasePending, "pending-machine-ns_m-1", ""},
		`{"status":{"phase":"Provisioning"}}`: {cluster.PhasePending, "pending-machine-ns_m-1", ""},
		`{"spec":{"providerID":"aws:///a/i-1"},"status":{"phase":"Provisioned"}}`:                     {cluster.PhaseRunning, "aws:///a/i-1", ""},
		`{"spec":{"providerID":"aws:///a/i-1"},"status":{"phase":"Running","nodeRef":{"name":"n"}}}`:  {cluster.PhaseRunning, "aws:///a/i-1", ""},
		`{"spec":{"providerID":"aws:///a/i-1"},"status":{"phase":"Updating","nodeRef":{"name":"n"}}}`: {cluster.PhaseRunning, "aws:///a/i-1", ""},
		`{"spec":{"providerID":"aws:///a/i-1"},"status":{"phase":"Deleting","nodeRef":{"name":"n"}}}`: {cluster.PhaseDeleting, "aws:///a/i-1", ""},
		`{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"},"status":{"phase":"Running"}}`:      {cluster.PhaseDeleting, "deleting-machine-ns_m-1", ""},
		`{"status":{"phase":"Deleted"}}`: {cluster.PhaseDeleting, "pending-machine-ns_m-1", ""},
		`{"status":{"phase":"Unknown"}}`: {cluster.PhaseUnknown, "pending-machine-ns_m-1", ""},
		`{"status":{"phase":"Failed"}}`:  {cluster.PhaseFailed, "failed-machine-ns_m-1", cluster.CauseOther},
		`{"status":{"failureReason":"CreateError","failureMessage":"InsufficientInstanceCapacity in a"}}`:                                                                                          {cluster.PhaseFailed, "failed-machine-ns_m-1", cluster.CauseCapacity},
		`{"status":{"deprecated":{"v1beta1":{"failureReason":"InsufficientResources"}}}}`:                                                                                                          {cluster.PhaseFailed, "failed-machine-ns_m-1", cluster.CauseCapacity},
		`{"spec":{"providerID":"x"},"status":{"phase":"Failed","failureMessage":"gone","nodeRef":{"name":"n"}}}`:                                                                                   {cluster.PhaseRunning, "x", cluster.CauseOther},
		`{"status":{"phase":"Provisioning","conditions":[{"type":"InfrastructureReady","status":"False","severity":"Error","reason":"InstanceProvisionFailed","message":"VcpuLimitExceeded"}]}}`:   {cluster.PhasePending, "pending-machine-ns_m-1", cluster.CauseQuota},
		`{"status":{"phase":"Provisioning","conditions":[{"type":"InfrastructureReady","status":"False","severity":"Info","reason":"WaitingForInfrastructure","message":"quota is fine"}]}}`:       {cluster.PhasePending, "pending-machine-ns_m-1", ""},
		`{"status":{"phase":"Provisioning","conditions":[{"type":"InfrastructureReady","status":"False","reason":"NotReady","message":"No valid host was found"}]}}`:                               {cluster.PhasePending, "pending-machine-ns_m-1", cluster.CauseCapacity},
		`{"status":{"phase":"Provisioning","v1beta2":{"conditions":[{"type":"InfrastructureReady","status":"False","reason":"InstanceCreateFailed","message":"boom"}]}}}`:                          {cluster.PhasePending, "pending-machine-ns_m-1", cluster.CauseOther},
		`{"status":{"phase":"Provisioning","conditions":[{"type":"InfrastructureReady","status":"False","reason":"NotReady","message":"FooMachine status.initialization.provisioned is false"}]}}`: {cluster.PhasePending, "pending-machine-ns_m-1", ""},
		`{"status":{"phase":"Pending","conditions":[{"type":"InfrastructureReady","status":"False","reason":"ObjectDoesNotExist","message":"FooMachine does not exist"}]}}`:                        {cluster.PhasePending, "pending-machine-ns_m-1", ""},
		`{"status":{"phase":"Provisioning","conditions":[{"type":"InfrastructureReady","status":"False","reason":"NotReady","message":"still creating"}]}}`:                                        {cluster.PhasePending, "pending-machine-ns_m-1", ""},
	} {
		g := gather(object(kindDeployment, "ns", "md", "c", nil), nil)
		in := newTest(Config{}).instance(g, aMachine(t, raw), false, nil)
		cause := cluster.Cause("")
		if in.Failure != nil {
			cause = in.Failure.Cause
		}
		if in.Phase != want.phase || in.ID != want.id || cause != want.cause {
			t.Errorf("%s:\n%q %s %q, want %+v", raw, in.Phase, in.ID, cause, want)
		}
	}
}

// Every form that a machine's ID has had names it; Delete may be asked with any.
func TestProviderIDForms(t *testing.T) {
	m := aMachine(t, `{"spec":{"providerID":"openstack:///8f0a"}}`)
	for id, want := range map[cluster.InstanceID]bool{
		"openstack:///8f0a": true, "pending-machine-ns_m-1": true, "failed-machine-ns_m-1": true, "deleting-machine-ns_m-1": true,
		"pending-machine-ns_m-2": false, "pending-machine-other_m-1": false, "openstack:///8f0b": false, "8f0a": false, "": false,
	} {
		if got := names(id, m); got != want {
			t.Errorf("%s names it: %t", id, got)
		}
	}
}

func TestAddressesAreTheWitness(t *testing.T) {
	m := aMachine(t, `{"spec":{"providerID":"x","failureDomain":"a"},"status":{"phase":"Running","failureDomain":"b","nodeRef":{"name":"node-1"},"addresses":[
		{"type":"Hostname","address":"Host-1"},{"type":"InternalDNS","address":"host-1.internal."},{"type":"ExternalDNS","address":"host.example.com"},
		{"type":"InternalIP","address":"10.0.0.7"},{"type":"InternalIP","address":"::ffff:10.0.0.7"},{"type":"ExternalIP","address":"2001:db8::1"},{"type":"Hostname","address":"10.0.0.8"}]}}`)
	in := newTest(Config{}).instance(gather(object(kindDeployment, "ns", "md", "c", nil), nil), m, false, map[string]string{"ns/m-1": "by-annotation"})
	if want := []string{"node-1", "host-1", "host-1.internal"}; !slices.Equal(in.NodeNames, want) {
		t.Errorf("node names %v, want %v", in.NodeNames, want)
	}
	for raw, want := range map[string]bool{
		`{"status":{"phase":"Running"}}`: true, `{"status":{"phase":"Running","nodeRef":{"name":"node-1"}}}`: false,
		`{"spec":{"providerID":"x://1"},"status":{"phase":"Running"}}`: false,
	} {
		in := newTest(Config{}).instance(gather(object(kindDeployment, "ns", "md", "c", nil), nil), aMachine(t, raw), false, map[string]string{"ns/m-1": "by-annotation"})
		if slices.Contains(in.NodeNames, "by-annotation") != want {
			t.Errorf("%s: a Node's annotation counts: %v, want %t", raw, in.NodeNames, want)
		}
	}
	if !slices.Contains(in.Names, "host.example.com") || slices.Contains(in.NodeNames, "host.example.com") {
		t.Errorf("names %v", in.Names)
	}
	if want := []netip.Addr{netip.MustParseAddr("10.0.0.7"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("10.0.0.8")}; !slices.Equal(in.Addresses, want) {
		t.Errorf("addresses %v, want %v", in.Addresses, want)
	}
	if in.Zone != "b" {
		t.Errorf("zone %q", in.Zone)
	}
}

// TestOptionsAnnotations plays every autoscaling-options annotation by its name.
func TestOptionsAnnotations(t *testing.T) {
	o, warnings := parseOptions(keys{"cluster.x-k8s.io"}.options(), map[string]string{
		"cluster.x-k8s.io/autoscaling-options-scaledownutilizationthreshold":    "0.5",
		"cluster.x-k8s.io/autoscaling-options-scaledowngpuutilizationthreshold": "0.4",
		"cluster.x-k8s.io/autoscaling-options-scaledownunneededtime":            "10m0s",
		"cluster.x-k8s.io/autoscaling-options-scaledownunreadytime":             "20m0s",
		"cluster.x-k8s.io/autoscaling-options-maxnodeprovisiontime":             "21m0s",
		"cluster.x-k8s.io/autoscaling-options-maxnodestartuptime":               "22m0s",
		"cluster.x-k8s.io/autoscaling-options-ignoredaemonsetsutilization":      "true",
		"other.group/autoscaling-options-scaledownunneededtime":                 "99m",
	})
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	if *o.ScaleDownUtilization != 0.5 || *o.ScaleDownGPUUtilization != 0.4 || *o.ScaleDownUnneededTime != 10*time.Minute || *o.ScaleDownUnreadyTime != 20*time.Minute ||
		*o.MaxNodeProvisionTime != 21*time.Minute || *o.MaxNodeStartupTime != 22*time.Minute || !*o.IgnoreDaemonSetsUtilization {
		t.Errorf("options %+v", o)
	}
	_, warnings = parseOptions("p-", map[string]string{"p-scaledownutilizationthreshold": "2", "p-scaledownunneededtime": "10", "p-nonsense": "1", "p-ignoredaemonsetsutilization": "maybe"})
	if len(warnings) != 4 {
		t.Errorf("warnings %v, want four", warnings)
	}
}

// TestSizeAnnotations plays the two annotations that opt a group in.
func TestSizeAnnotations(t *testing.T) {
	const lo, hi = "cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size", "cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size"
	p := newTest(Config{ClusterName: "c"})
	for _, c := range []struct {
		annotations map[string]string
		ours, sound bool
		min, max    int
	}{
		{map[string]string{lo: "1", hi: "5"}, true, true, 1, 5},
		{map[string]string{lo: "0", hi: "0"}, true, true, 0, 0},
		{map[string]string{lo: "1"}, false, false, 0, 0},
		{map[string]string{hi: "5"}, false, false, 0, 0},
		{map[string]string{lo: "x", hi: "5"}, true, false, 0, 0},
		{map[string]string{lo: "-1", hi: "5"}, true, false, 0, 0},
		{map[string]string{lo: "6", hi: "5"}, true, false, 0, 0},
		{map[string]string{oldMinSize: "2", oldMaxSize: "3"}, true, true, 2, 3},
	} {
		for _, kind := range []string{kindDeployment, kindSet, kindPool} {
			o := object(kind, "ns", "g", "c", nil)
			o.Annotations = c.annotations
			if got := p.ours(o); got != c.ours {
				t.Errorf("%s %v: ours %t", kind, c.annotations, got)
			}
			if min, max, why := p.bounds(o); c.ours && (why == "") != c.sound || c.sound && (min != c.min || max != c.max) {
				t.Errorf("%s %v: %d..%d %q", kind, c.annotations, min, max, why)
			}
		}
	}
	owned := object(kindSet, "ns", "g", "c", nil)
	owned.Annotations = map[string]string{lo: "1", hi: "5"}
	owned.OwnerReferences = []capi.OwnerRef{{Kind: kindDeployment, Name: "md", UID: "u"}}
	if p.ours(owned) {
		t.Error("a MachineSet of a MachineDeployment is a group of its own")
	}
}
