package magnum

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/kelseyhightower/envconfig"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
)

// TestConfigIsReadByEnvconfig: the forms of Cluster Autoscaler's flags, by the names of
// our variables.
func TestConfigIsReadByEnvconfig(t *testing.T) {
	for name, value := range map[string]string{
		"AUTOSCALER_MAGNUM_CLUSTER":                    "k8s",
		"AUTOSCALER_MAGNUM_AUTO_DISCOVERY":             "magnum:role=worker,autoscaling; magnum:role=gpu",
		"AUTOSCALER_MAGNUM_GROUPS":                     "1:5:DefaultNodeGroup,pool",
		"AUTOSCALER_MAGNUM_HEAT":                       "never",
		"AUTOSCALER_MAGNUM_REMOVES_BY_NAME":            "yes",
		"AUTOSCALER_MAGNUM_ARCH":                       "arm64",
		"AUTOSCALER_MAGNUM_VM_MEMORY_OVERHEAD_PERCENT": "3",
	} {
		t.Setenv(name, value)
	}
	var c struct{ Magnum Config }
	if err := envconfig.Process("AUTOSCALER", &c); err != nil {
		t.Fatal(err)
	}
	if err := c.Magnum.Validate(); err != nil {
		t.Error(err)
	}
	roles, names, _ := c.Magnum.parse()
	if !slices.Equal(roles, []string{"worker", "autoscaling", "gpu"}) || !slices.Equal(names, []named{{"DefaultNodeGroup", 1, 5}, {"pool", -1, -1}}) {
		t.Errorf("%v %v", roles, names)
	}
	if c.Magnum.Heat != "never" || c.Magnum.RemovesByName != "yes" || c.Magnum.Arch != "arm64" || c.Magnum.VMMemoryOverheadPercent != 3 {
		t.Errorf("%+v", c.Magnum)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	good := Config{Cluster: "k8s", Groups: []string{"a"}, Heat: "auto", RemovesByName: "auto", Arch: "amd64"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*Config){
		"AUTOSCALER_MAGNUM_CLUSTER: it is not set":      func(c *Config) { c.Cluster = "" },
		"AUTOSCALER_MAGNUM_CLUSTER: \"a b\"":            func(c *Config) { c.Cluster = "a b" },
		"no node groups are configured":                 func(c *Config) { c.Groups = nil },
		"magnum:role=worker,autoscaling":                func(c *Config) { c.AutoDiscovery = Discovery{"asg:tag=a"} },
		"leave the role master out":                     func(c *Config) { c.AutoDiscovery = Discovery{"magnum:role=master"} },
		"a role is empty":                               func(c *Config) { c.AutoDiscovery = Discovery{"magnum:role=worker,,a"} },
		"min 5 is above max 1":                          func(c *Config) { c.Groups = []string{"5:1:a"} },
		"min \"x\"":                                     func(c *Config) { c.Groups = []string{"x:1:a"} },
		"max \"-1\"":                                    func(c *Config) { c.Groups = []string{"0:-1:a"} },
		"write name or min:max:name":                    func(c *Config) { c.Groups = []string{"1:a"} },
		"named twice":                                   func(c *Config) { c.Groups = []string{"a", "0:1:a"} },
		"AUTOSCALER_MAGNUM_HEAT":                        func(c *Config) { c.Heat = "maybe" },
		"AUTOSCALER_MAGNUM_REMOVES_BY_NAME":             func(c *Config) { c.RemovesByName = "maybe" },
		"AUTOSCALER_MAGNUM_ARCH":                        func(c *Config) { c.Arch = "x86_64" },
		"AUTOSCALER_MAGNUM_VM_MEMORY_OVERHEAD_PERCENT:": func(c *Config) { c.VMMemoryOverheadPercent = 100 },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestProviderIDForms: every form that is written, seed 000's machine ID among them.
func TestProviderIDForms(t *testing.T) {
	const u = "5a3d8d1c-0b9c-4f6e-9c1d-0123456789ab"
	for id, ok := range map[cluster.InstanceID]bool{
		"openstack:///" + u: true, "openstack://RegionOne/" + u: true, "openstack://" + u: true, u: true,
		"openstack:///5A3D8D1C-0B9C-4F6E-9C1D-0123456789AB": true, "5a3d8d1c0b9c4f6e9c1d0123456789ab": true,
		"fake:///workers/0": false, "openstack:///a/" + u: false, "aws:///z/" + u: false, "": false, "openstack:///": false, "k8s-minion-0": false,
	} {
		uuid, got := parseProviderID(id)
		if got != ok || ok && uuid != u {
			t.Errorf("%s: %q %t", id, uuid, got)
		}
	}
}

func server(id, name, address string) servers.Server {
	return servers.Server{ID: id, Name: name, Status: "ACTIVE", Addresses: map[string]any{"n": []any{map[string]any{"addr": address, "version": 4.0}}}}
}

// TestServersByNameAndAddress: the names of seed 000 (k8s-6bawhy45wr5t-minion-0), those
// of later releases, and neighbours that look like them.
func TestServersByNameAndAddress(t *testing.T) {
	all := []servers.Server{
		server("1", "k8s-6bawhy45wr5t-minion-0", "10.0.0.5"),
		server("2", "k8s-6bawhy45wr5t-minion-1", "10.0.0.6"), // new: Magnum does not report its address yet
		server("3", "k8s-6bawhy45wr5t-master-0", "10.0.0.4"),
		server("4", "k8s-zzzzzzzzzzzz-minion-0", "10.9.0.5"), // of another cluster of the same name
		server("5", "k8s-pool1-abcdefghijkl-node-0", "10.0.0.9"),
		server("6", "k8s-6bawhy45wr5t-minion-0-copy", "10.0.0.5"),
		server("7", "mine", "10.0.0.5"),
	}
	c := &magnumCluster{Name: "k8s", MasterAddresses: []string{"10.0.0.4"}}
	ids := func(m membership) string {
		var out []string
		for _, s := range m.servers {
			out = append(out, s.ID)
		}
		slices.Sort(out)
		return strings.Join(out, "")
	}
	for _, want := range []struct {
		group    nodeGroup
		ids      string
		by       evidence
		unproven int
	}{
		{nodeGroup{Name: "default-worker", IsDefault: true, NodeAddresses: []string{"10.0.0.5"}}, "12", address, 1},
		{nodeGroup{Name: "default-worker", IsDefault: true}, "12", address, 1}, // by the master's address
		{nodeGroup{Name: "pool1", NodeAddresses: []string{"10.0.0.9"}}, "5", address, 0},
		{nodeGroup{Name: "pool1"}, "", none, 1},
		{nodeGroup{Name: "pool2", NodeAddresses: []string{"10.0.0.9"}}, "", none, 0},
	} {
		m := byAddress(c, &reading{nodeGroup: want.group}, all)
		if ids(m) != want.ids || m.by != want.by || m.unproven != want.unproven {
			t.Errorf("%s %v: servers %q by %d, %d unproven", want.group.Name, want.group.NodeAddresses, ids(m), m.by, m.unproven)
		}
	}
	if got := heatBase(cut("My_Cluster.of+the.Year", 30)); got != "my-cluster-ofthe-year" {
		t.Error(got)
	}
}

func TestServersByStackName(t *testing.T) {
	for name, want := range map[string]bool{
		"kube-abcde-pool-x7k2p-9fwq4": true, "KUBE-abcde-pool-x7k2p": true, "kube-abcde-pool-b-x7k2p-9fwq4": false, "kube-abcde-pool": false,
		"kube-abcde-pool-": false, "kube-abcdef-pool-x": false, "other-kube-abcde-pool-x": false,
	} {
		if got := byStack(name, "kube-abcde", "Pool", []string{"pool-b", "poolside"}); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestDriversThatRemoveByName(t *testing.T) {
	p := &Provider{cfg: Config{RemovesByName: "auto"}}
	for stack, want := range map[string]bool{
		"17ab3ae7-1a81-43e6-98ec-b6ffd04f91d3": true, "kube-x7k2p": true, "k8s-lu3bksbwsln3": false, "": true,
	} {
		if got := p.removesByName(&magnumCluster{StackID: stack}, &nodeGroup{}); got != want {
			t.Errorf("stack %q: %t", stack, got)
		}
	}
}

// TestEmptyNamesAreNeverSent: Magnum removes an arbitrary node for one
// (kubernetes/autoscaler#7776).
func TestEmptyNamesAreNeverSent(t *testing.T) {
	p := &Provider{}
	if err := p.resize(context.Background(), nil, nil, nil, 1, []string{"a", ""}); err == nil {
		t.Error("an empty name was sent")
	}
}

// TestWhatWasAskedForIsRemembered until it shows, is over, or is lost.
func TestWhatWasAskedForIsRemembered(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &Provider{now: func() time.Time { return now }}
	c := &magnumCluster{Name: "k8s", Status: "CREATE_COMPLETE"}
	g := &nodeGroup{UUID: "g", Name: "pool", NodeCount: 2, Status: "CREATE_COMPLETE", UpdatedAt: now}
	o := &nodeGroup{UUID: "o", NodeCount: 1, Status: "CREATE_COMPLETE"}
	step := func(what string, busy bool, target int, lost bool) {
		t.Helper()
		v := p.look(now, c, nil, g, o)
		if (v.busy != "") != busy || v.target(g) != target || (v.lost != "") != lost || v.target(o) != 1 {
			t.Errorf("%s: busy %q, target %d, lost %q", what, v.busy, v.target(g), v.lost)
		}
	}
	step("nothing", false, 2, false)
	p.remember(g, 1, []string{"u"}, true)
	step("accepted", true, 1, false)
	if v := p.look(now, c, nil, o); v.busy == "" || !v.going("u") || v.going("x") {
		t.Errorf("%+v", v)
	}
	g.NodeCount, g.Status, c.Status = 1, "UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"
	step("under way", true, 1, false)
	g.Status, c.Status, g.UpdatedAt = "UPDATE_COMPLETE", "UPDATE_COMPLETE", now.Add(time.Second)
	step("over", false, 1, false)
	if p.open() != "" {
		t.Error("still remembered")
	}
	// A read that began before that and ends after it: its group is as it was before.
	late := &nodeGroup{UUID: "g", Name: "pool", NodeCount: 2, Status: "CREATE_COMPLETE", UpdatedAt: now}
	if v := p.look(now.Add(-time.Second), c, nil, late, o); v.target(late) != 1 || v.busy == "" || !v.going("u") {
		t.Errorf("an overtaken read: %+v", v)
	}
	if v := p.look(now.Add(time.Second), c, nil, late, o); v.busy != "" {
		t.Errorf("a later read: %+v", v)
	}
	// A read that two operations have overtaken: the newest of its group counts, also while it
	// is under way.
	began := now
	now = now.Add(time.Second)
	before := *g
	for n, count := range []int{3, 5} {
		p.remember(g, count, nil, true)
		if v := p.look(began, c, nil, &before, o); n > 0 && (v.target(&before) != count || v.busy == "") {
			t.Errorf("a read that an operation under way has overtaken: %+v", v)
		}
		now = now.Add(time.Second)
		g.NodeCount, g.Status, g.UpdatedAt = count, "UPDATE_COMPLETE", now
		step("over", false, count, false)
	}
	if v := p.look(began, c, nil, &before, o); v.target(&before) != 5 || v.busy == "" {
		t.Errorf("a read that two operations have overtaken: %+v", v)
	}
	// A read that shows the operation before is no proof of the one that was requested since.
	older := *g
	older.Status = "UPDATE_IN_PROGRESS"
	for _, ago := range []time.Duration{0, time.Second} {
		older.UpdatedAt = g.UpdatedAt.Add(-ago)
		began, now = now, now.Add(time.Second)
		p.remember(g, 6, nil, true)
		if v := p.look(began, c, nil, &older, o); v.target(&older) != 6 || v.busy == "" || v.asked == nil {
			t.Errorf("a read from the operation before, %s old: %+v", ago, v)
		}
		step("accepted", true, 6, false)
		p.forget("g")
	}
	// An operation that was finished more than overtakenWithin ago is dropped.
	now = now.Add(overtakenWithin + time.Second)
	p.remember(g, 1, nil, true)
	g.NodeCount, g.UpdatedAt = 1, now
	step("over", false, 1, false)
	if len(p.over) != 1 {
		t.Errorf("%d finished operations are kept", len(p.over))
	}
	// Refused by the conductor: the count is what it was, and the group has changed.
	p.remember(g, 4, nil, true)
	g.Status, c.Status, g.UpdatedAt = "UPDATE_FAILED", "UPDATE_FAILED", now.Add(2*time.Second)
	step("refused", false, 1, false)
	// Accepted, and then nothing.
	p.remember(g, 4, nil, true)
	now = now.Add(shownWithin)
	step("late", true, 4, false)
	now = now.Add(time.Second)
	step("lost", false, 1, true)
	step("lost, told once", false, 1, false)
	// No answer came: the count that is shown holds, and nothing is asked for a while.
	p.remember(g, 4, nil, false)
	step("not answered", true, 1, false)
	now = now.Add(unsureWithin + time.Second)
	step("not answered and not done", false, 1, false)
	// A group that is gone takes what was asked for it along.
	p.remember(g, 4, nil, true)
	p.forget("other")
	if p.open() != "g" {
		t.Error("forgotten for another group")
	}
	p.forget("g")
	if p.open() != "" {
		t.Error("not forgotten")
	}
}

func TestStatesThatTakeAResize(t *testing.T) {
	for status, want := range map[string]bool{"CREATE_COMPLETE": true, "UPDATE_FAILED": true, "UPDATE_IN_PROGRESS": true, "CREATE_IN_PROGRESS": true,
		"CREATE_FAILED": false, "DELETE_IN_PROGRESS": false, "DELETE_FAILED": false, "ROLLBACK_FAILED": false, "CHECK_COMPLETE": true} {
		if got := shut(&magnumCluster{Status: status}, &nodeGroup{}) == ""; got != want {
			t.Errorf("%s: %t", status, got)
		}
	}
	if shut(&magnumCluster{Status: "UPDATE_COMPLETE"}, &nodeGroup{Status: "DELETE_IN_PROGRESS"}) == "" {
		t.Error("a group that is being deleted is resized")
	}
}

func TestPhases(t *testing.T) {
	was := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		s    servers.Server
		want cluster.Phase
	}{
		{servers.Server{Status: "BUILD"}, cluster.PhasePending}, {servers.Server{Status: "ACTIVE"}, cluster.PhaseRunning},
		{servers.Server{Status: "ACTIVE", TaskState: "deleting"}, cluster.PhaseDeleting}, {servers.Server{Status: "SHUTOFF"}, cluster.PhaseStopped},
		{servers.Server{Status: "HARD_REBOOT"}, cluster.PhaseRunning}, {servers.Server{Status: "SHELVED_OFFLOADED"}, cluster.PhaseStopped},
		{servers.Server{Status: "SOFT_DELETED"}, cluster.PhaseDeleting}, {servers.Server{Status: "DELETED"}, cluster.PhaseGone},
		{servers.Server{Status: "ERROR"}, cluster.PhaseFailed}, {servers.Server{Status: "ERROR", LaunchedAt: was, PowerState: servers.RUNNING}, cluster.PhaseRunning},
		{servers.Server{Status: "ERROR", LaunchedAt: was}, cluster.PhaseUnknown}, {servers.Server{Status: "UNKNOWN"}, cluster.PhaseUnknown},
	} {
		if got := phaseOf(&c.s); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.s.Status, c.s.TaskState, got, c.want)
		}
	}
}

func TestMicroversionIsAgreedOn(t *testing.T) {
	answer := func(header, body string) error {
		e := gophercloud.ErrUnexpectedResponseCode{Actual: 406, Body: []byte(body), ResponseHeader: map[string][]string{}}
		if header != "" {
			e.ResponseHeader.Set("OpenStack-API-Maximum-Version", header)
		}
		return e
	}
	for _, c := range []struct {
		err           error
		version, says string
	}{
		{answer("container-infra 1.9", ""), "1.9", ""},
		{answer("container-infra 1.12", ""), "1.10", ""},
		{answer("", "The supported version range is: [1.1, 1.9]."), "1.9", ""},
		{answer("container-infra 1.7", ""), "", "1.7 at most"},
		{answer("", ""), "", "does not say"},
		{answer("", `{"errors": [{"max_version": "1.9", "min_version": "1.1", "code": "magnum.microversion-unsupported"}]}`), "1.9", ""},
		{errors.New("other"), "", "does not say"},
	} {
		version, why := agree(c.err)
		if version != c.version || (c.says == "") != (why == "") || !strings.Contains(why, c.says) {
			t.Errorf("%v: %q %q", c.err, version, why)
		}
	}
}

func TestHintsThatCannotBeRead(t *testing.T) {
	h := parseHints(map[string]string{
		hintTaint + "a": "nonsense", hintResources + "memory": "lots", hintOptions + "maxnodeprovisiontime": "soon", hintOptions + "scaledownutilizationthreshold": "2",
		hintOptions + "ignoredaemonsetsutilization": "perhaps", labelBootVolume: "big", labelKubelet: "--max-pods=many", hintLabel + "ok": "yes", hintResources + "cpu": "1500m",
		hintResources + "ephemeral-storage": "20Gi", hintOptions + "maxnodestartuptime": "4m",
	})
	if len(h.warnings) != 7 || h.labels["ok"] != "yes" || len(h.taints) != 0 || h.resources["cpu"] != 1500 || h.resources["ephemeral-storage"] != 20<<30 || *h.options.MaxNodeStartupTime != 4*time.Minute {
		t.Errorf("%q %+v", h.warnings, h)
	}
}

// TestHintsThatNoNodeCanHave: each is left out and named, and nothing else of the group is lost.
func TestHintsThatNoNodeCanHave(t *testing.T) {
	h := parseHints(map[string]string{
		hintLabel + "pool": "team/a", hintLabel + "ok": "yes", hintTaint + "a": "b/c:NoSchedule", hintTaint + "ok": "yes:NoSchedule", hintResources + "gpu": "1", hintResources + "nvidia.com/gpu": "1",
		labelKubelet: "--node-labels=x=y/z,fine=1 --register-with-taints=t=u/v:NoSchedule,fine=1:NoExecute --max-pods=50",
	})
	if len(h.warnings) != 5 || len(h.labels) != 2 || h.labels["fine"] != "1" || len(h.taints) != 2 || len(h.resources) != 2 || h.resources["pods"] != 50 {
		t.Errorf("%q %+v", h.warnings, h)
	}
	for _, says := range []string{hintLabel + `pool="team/a" of the node group is left out: "team/a" cannot be the value of a label`, "--node-labels=x=y/z in the label kubelet_options of the node group is left out", "--register-with-taints=t=u/v:NoSchedule", `"gpu" is no name`} {
		if !slices.ContainsFunc(h.warnings, func(w string) bool { return strings.Contains(w, says) }) {
			t.Errorf("no %q in %q", says, h.warnings)
		}
	}
}

func TestNodeNames(t *testing.T) {
	if got := names("K8s_6bawhy45wr5t-minion-0"); !slices.Equal(got, []string{"k8s-6bawhy45wr5t-minion-0", "k8s-6bawhy45wr5t-minion-0.novalocal", "k8s_6bawhy45wr5t-minion-0"}) {
		t.Errorf("%q", got)
	}
}
