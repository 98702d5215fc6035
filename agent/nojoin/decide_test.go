package nojoin

import (
	"strings"
	"testing"
	"time"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/bootstrap/console"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

const id = "aws:///eu-west-1a/i-0123456789abcdef0"

// world is a running instance without a Node.
func world(change func(*cluster.Snapshot, *cluster.Instance)) *cluster.Snapshot {
	s := &cluster.Snapshot{Now: now, Groups: []cluster.NodeGroup{{ID: "workers", Instances: []cluster.Instance{{ID: id, Phase: cluster.PhaseRunning,
		Created: now.Add(-10 * time.Minute), NodeNames: []string{"ip-10-0-0-7"}}}}}}
	if change != nil {
		change(s, &s.Groups[0].Instances[0])
	}
	return s
}

func mark(text string) string {
	return "autoscaler-agent: phase=start\nautoscaler-agent: phase=join node=ip-10-0-0-7\nautoscaler-agent: phase=" + text + "\n"
}

const elsewhere = "the cause is on the machine"

// TestWaysNotToJoin: the first sentence names the cause with a console and without one. Without one,
// what only the machine can see is named as such. The marks are those that the script writes
// (test/suite/script, test/suite/worker), the faults those of bootstrap.TryUserData.
func TestWaysNotToJoin(t *testing.T) {
	for name, c := range map[string]struct {
		console       string // the mark of the script; empty: none is written
		fault         string // of the user data
		known         func(*Known)
		snapshot      func(*cluster.Snapshot, *cluster.Instance)
		with, without string
	}{
		"endpoint":                 {console: "failed reason=endpoint-refused", fault: "the endpoint h:1 of its user data refuses the connection", with: "the endpoint refuses the connection", without: "refuses the connection"},
		"DNS":                      {console: "failed reason=dns", fault: "the endpoint h:1 of its user data does not resolve", with: "does not resolve the name of the endpoint", without: "does not resolve"},
		"DNS of the machine alone": {console: "failed reason=dns", with: "the machine's DNS does not resolve", without: "DNS"},
		"port dropped":             {console: "failed reason=endpoint-timeout", with: "something drops the packets", without: "dropped packets"},
		"token ended":              {console: "failed reason=join-token", fault: "token asa001 of its user data has ended", with: "token asa001 of its user data has ended", without: "token asa001 of its user data has ended"},
		"token of another cluster": {console: "failed reason=join-token", fault: "token zzzzzz of its user data is none of this cluster", with: "is none of this cluster", without: "is none of this cluster"},
		"its secret":               {console: "failed reason=cluster-info-signature", fault: "token asa001 of its user data is of another cluster", with: "is of another cluster", without: "is of another cluster"},
		"pin wrong":                {console: "failed reason=ca-pin", fault: "the pin in its user data is not that of the cluster's CA", with: "the pin in its user data", without: "the pin in its user data"},
		"kubelet crash":            {console: "failed reason=kubelet", with: "the kubelet crashes", without: elsewhere + " (its image, disk, containerd, kubelet"},
		"containerd crash":         {console: "failed reason=containerd", with: "containerd crashes", without: elsewhere + " (its image, disk, containerd"},
		"skew":                     {console: "failed reason=version-skew", fault: "the Kubernetes version v1.37.0 of its user data is newer than the API server's, v1.36.3: version skew", with: "is newer than the API server's", without: "version skew"},
		"user data too large": {snapshot: func(s *cluster.Snapshot, in *cluster.Instance) {
			s.Groups[0].Instances = nil
			s.Groups[0].Failures = []cluster.Failure{{Text: "User data is limited to 16384 bytes", At: now}}
		}, with: "group workers could not be started: User data is limited to 16384 bytes", without: "User data is limited"},
		"disk full":         {console: "failed reason=no-space dir=/var/lib during=join", with: "the disk is full", without: elsewhere + " (its image, disk"},
		"clock an hour off": {console: "failed reason=clock clock=-3600", with: "clock is wrong: the API server's certificate is not valid yet, or not any more, by that clock; its clock is 1h0m0s behind", without: "or clock)"},

		// more of them
		"held by a rule": {console: "failed reason=csr", known: func(k *Known) {
			k.Request = &Request{Name: "csr-1", Node: "ip-10-0-0-7", Kind: "client certificate", Do: "later", Rule: "J9", Why: "the cloud does not list it"}
		}, with: "its request csr-1 for a client certificate is held by rule J9: the cloud does not list it", without: "is held by rule J9"},
		"denied by a rule": {known: func(k *Known) {
			k.Request = &Request{Name: "csr-1", Node: "ip-10-0-0-7", Kind: "client certificate", Do: "deny", Rule: "J4", Why: "x"}
		}, with: "is denied by rule J4", without: "is denied by rule J4"},
		"certificate and no Node": {console: "joined", known: func(k *Known) {
			k.Request = &Request{Name: "csr-1", Node: "ip-10-0-0-7", Kind: "client certificate", Do: "approve", Rule: "J7"}
		}, with: "does not register", without: "its client certificate was approved (csr-1, rule J7) and no Node of it has come"},
		"attestation refused": {console: "attest left=3 reason=A12", known: func(k *Known) { k.Attestation = &Attestation{Rule: "A12", Why: "it has joined before", At: now} },
			with: "the leader refuses its attestation by rule A12: it has joined before", without: "by rule A12"},
		"a clock that the leader refuses": {console: "failed reason=attest rule=A4", known: func(k *Known) {
			k.Attestation = &Attestation{Rule: "A4", Why: "the machine's clock is off by 1h0m0s", At: now}
		},
			with: "clock is wrong", without: "rule A4: the machine's clock is off by 1h0m0s"},
		"swap":          {console: "failed reason=kubelet-swap", with: "has swap on", without: elsewhere},
		"a download":    {console: "failed reason=download file=kubelet curl=6", with: "kubelet: a file could not be fetched: the machine's DNS does not resolve", without: "on its way here (DNS"},
		"still pending": {snapshot: func(_ *cluster.Snapshot, in *cluster.Instance) { in.Phase = cluster.PhasePending }, with: "the cloud has not started it yet", without: "the cloud has not started it yet"},
		"no capacity": {snapshot: func(_ *cluster.Snapshot, in *cluster.Instance) {
			in.Phase, in.Failure = cluster.PhaseFailed, &cluster.Failure{Text: "No valid host was found"}
		}, with: "No valid host was found", without: "No valid host was found"},
		"young":             {snapshot: func(_ *cluster.Snapshot, in *cluster.Instance) { in.Created = now.Add(-time.Minute) }, with: "launched 1m0s ago and may still be booting", without: "may still be booting"},
		"joined":            {console: "joined", snapshot: nodes("ip-10-0-0-7", id, cluster.StatusTrue), with: "it has joined as Node ip-10-0-0-7, which is Ready", without: "it has joined as Node ip-10-0-0-7"},
		"joined, not Ready": {console: "joined", snapshot: nodes("ip-10-0-0-7", id, cluster.StatusFalse), with: "Node ip-10-0-0-7, which is not Ready since", without: "which is not Ready since"},
		"ended by the agent": {console: "failed reason=no-space", known: func(k *Known) {
			k.Ended = &Ended{At: now, Rule: "I1", Why: "it has not become a Node by 12:00"}
		}, snapshot: nodes("ip-10-0-0-7", id, cluster.StatusTrue), with: "this agent has ended it, at 2026-11-27T12:00:00Z by rule I1: it has not become a Node by 12:00", without: "this agent has ended it"},
		"a silent API server": {console: "joined", snapshot: func(s *cluster.Snapshot, _ *cluster.Instance) { s.Stale = "the API server has been silent for 20s" },
			with: "the user data came to its end", without: "not all was read"},
		"a group that was not read": {snapshot: func(s *cluster.Snapshot, _ *cluster.Instance) {
			s.Groups[0].Instances, s.Groups[0].Stale = nil, "the cloud is throttled"
		}, with: "not all was read: the cloud is throttled", without: "not all was read"},
		"ended":    {console: "joined", fault: "token asa001 of its user data has ended", snapshot: func(_ *cluster.Snapshot, in *cluster.Instance) { in.Phase = cluster.PhaseGone }, with: "the cloud has ended it", without: "the cloud has ended it"},
		"given up": {console: "failed reason=no-space", snapshot: func(_ *cluster.Snapshot, in *cluster.Instance) { in.Phase = cluster.PhaseDeleting }, with: "the disk is full", without: "the cloud is ending it"},
		"renamed":  {console: "joined", snapshot: nodes("old", id, cluster.StatusUnknown, "new", id, cluster.StatusTrue), with: "its Node old gets no news because the machine answers under another name, as Node new", without: "as Node new"},
		"silent":   {console: "joined", snapshot: nodes("ip-10-0-0-7", id, cluster.StatusUnknown), with: "or runs under another name because the host name was changed", without: "or runs under another name"},
		"not Ready, and asks in vain": {snapshot: nodes("ip-10-0-0-7", id, cluster.StatusFalse), known: func(k *Known) {
			k.Request = &Request{Name: "csr-2", Node: "ip-10-0-0-7", Kind: "serving certificate", Do: "later", Rule: "R14", Why: "x", At: now.Add(time.Second)}
		}, with: "and its request csr-2 for a serving certificate is held by rule R14", without: "is held by rule R14"},
		"silent since an older request": {snapshot: nodes("ip-10-0-0-7", id, cluster.StatusUnknown), known: func(k *Known) {
			k.Request = &Request{Name: "csr-2", Node: "ip-10-0-0-7", Kind: "serving certificate", Do: "later", Rule: "R14", Why: "x", At: now.Add(-time.Minute)}
		}, with: "or runs under another name", without: "or runs under another name"},
		"a namesake":     {console: "failed reason=node-name", snapshot: nodes("ip-10-0-0-7", "", cluster.StatusTrue), with: "a Ready Node has the machine's name already", without: "a Node ip-10-0-0-7 has its name and tells no provider ID"},
		"another's Node": {console: "failed reason=node-name", snapshot: nodes("ip-10-0-0-7", "aws:///eu-west-1a/i-0000dead", cluster.StatusTrue), with: "a Ready Node has the machine's name already", without: elsewhere},
	} {
		t.Run(name, func(t *testing.T) {
			k := KnownOf(world(c.snapshot), id, 15*time.Minute)
			if c.known != nil {
				c.known(&k)
			}
			f := Facts{Known: k, UserData: &UserData{Fault: c.fault, Remedy: c.fault, From: "launch template lt version 3", TokenID: "asa001"}}
			text := ""
			if c.console != "" {
				text = mark(c.console)
			}
			empty, seen := console.Diagnose("", false), console.Diagnose(text, false)
			for want, d := range map[string]*console.Diagnosis{"no console: " + c.without: nil, "an empty console: " + c.without: &empty, "a console: " + c.with: &seen} {
				f.Console, f.ConsoleFault = d, ""
				if d == nil {
					f.ConsoleFault = "not authorized"
				}
				got := Conclude(f)
				if _, part, _ := strings.Cut(want, ": "); !strings.Contains(got.Summary, part) || got.Summary == "" || len(got.Known) < 4 {
					t.Errorf("%s\nhave %q\nknown %s", want, got.Summary, strings.Join(got.Known, "\n"))
				}
			}
		})
	}
}

// TestForeignUserData: where the agent's own script does not tell what the machine does, that is said first, but
// not of a machine that boots.
func TestForeignUserData(t *testing.T) {
	for want, age := range map[string]time.Duration{"its user data (launch template lt version 3) was not made by": 5 * time.Minute, "may still be booting": time.Minute} {
		k := KnownOf(world(func(_ *cluster.Snapshot, in *cluster.Instance) { in.Created = now.Add(-age) }), id, 15*time.Minute)
		boots := console.Diagnose("[  OK  ] Started sshd", false)
		if got := Conclude(Facts{Known: k, Console: &boots, UserData: &UserData{From: "launch template lt version 3", Foreign: true}}); !strings.Contains(got.Summary, want) {
			t.Errorf("after %s: %q", age, got.Summary)
		}
	}
}

func nodes(list ...any) func(*cluster.Snapshot, *cluster.Instance) {
	return func(s *cluster.Snapshot, _ *cluster.Instance) {
		for i := 0; i < len(list); i += 3 {
			s.Nodes = append(s.Nodes, &cluster.Node{Name: cluster.NodeName(list[i].(string)), ProviderID: list[i+1].(string), Ready: list[i+2].(cluster.Status), ReadySince: now})
		}
	}
}

// TestFind: an instance is found by its provider ID and by the cloud's own ID, and by no part of it.
func TestFind(t *testing.T) {
	for name, want := range map[string]bool{id: true, "i-0123456789abcdef0": true, "0123456789abcdef0": false, "eu-west-1a": false, "": false, "aws:///eu-west-1b/i-0123456789abcdef0": false} {
		if _, in := Find(world(nil), name); (in != nil) != want {
			t.Errorf("%q: %v", name, in)
		}
	}
}
