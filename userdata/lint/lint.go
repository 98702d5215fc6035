// Package lint judges user data of any origin, also after changes by hand,
// before it reaches a launch template.
//
// It refuses to run what it reads, to look at files or networks, and to repeat a secret in a
// finding. User data is taken apart, rendered, merged and decoded as cloud-init does it; in
// test/suite/cloudinit cloud-init itself is the judge. Its list of faults is what has been seen to strand machines or to leak tokens; user
// data without a finding is not proven good.
package lint

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/autoscaler-agent/autoscaler-agent/agent/cluster"
	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// The rules. docs/userdata.md lists them.
const (
	Size      = "W1"  // bytes that the cloud takes
	Secret    = "W2"  // a secret other than a join token that expires
	EveryBoot = "W3"  // runs at every boot and is not guarded
	API       = "W4"  // kubeadm's configuration against the version of Kubernetes
	Shell     = "W5"  // syntax of shell scripts
	Schema    = "W6"  // what cloud-init or Ignition refuses or ignores
	Unchecked = "W7"  // a download that nothing checks
	Exposed   = "W8"  // a token in arguments, traces or readable files
	NoEffect  = "W9"  // settings that do nothing or are gone, and those with which the kubelet does not start
	JoinInfo  = "W10" // join values that are missing or trust anybody
	ReadOnly  = "W11" // a path that the system does not let anybody write
	Altered   = "W12" // taken otherwise than it is written, replaced, or too early
	Skewed    = "W13" // a kubelet that may not join the cluster's API server
	OneName   = "W14" // one name, address or provider ID for all machines
)

// Finding is one fault.
type Finding struct {
	Rule string `json:"rule"`
	// Fails tells that a machine with this user data would not join, would join as what its
	// cluster does not support, or would give a secret away; else the finding is a warning.
	Fails bool   `json:"fails"`
	Line  int    `json:"line,omitempty"` // of the script or document, from 1; 0 for the whole
	Text  string `json:"text"`
}

// StopsJoin tells a fault with which no machine joins from one that gives a secret away, trusts too much, or
// stops a later boot or a second machine.
func (f Finding) StopsJoin() bool {
	return f.Fails && f.Line > 0 && slices.Contains([]string{API, Shell, Schema, NoEffect, JoinInfo, ReadOnly, Altered}, f.Rule)
}

// Options say what the user data is for; each may be empty.
type Options struct {
	Cloud, System string
	// Version is that of Kubernetes; "" takes the one that the user data names.
	Version string
	// APIServerVersion is that of the cluster's API server; "" where it is not known.
	APIServerVersion string
}

// Check returns the findings, those of the whole first and the others by line.
func Check(data []byte, o Options) []Finding {
	l := &linter{Options: o, found: &[]Finding{}, at: func(n int) int { return n }, told: map[string]bool{}, seen: &installed{minor: -1, joinFiles: map[string]bool{}}}
	l.size(data)
	l.document(data)
	l.seen.judge(l)
	slices.SortStableFunc(*l.found, func(a, b Finding) int { return a.Line - b.Line })
	return *l.found
}

// linter judges what stands at one place of the user data.
type linter struct {
	Options
	found *[]Finding
	told  map[string]bool
	seen  *installed
	what  string        // the place, where lines do not tell it
	at    func(int) int // the line of the user data for a line of the place; nil: there is none
}

// in is a place within the place of l.
func (l *linter) in(what string, at func(int) int) *linter {
	inner := *l
	if what != "" && l.what != "" {
		what = l.what + ": " + what
	}
	if what != "" {
		inner.what = what
	}
	if outer := l.at; at == nil || outer == nil {
		inner.at = nil
	} else {
		inner.at = func(n int) int { return outer(at(n)) }
	}
	return &inner
}

// add tells a finding once, though a text is read as itself and as a part of a larger one.
func (l *linter) add(rule string, fails bool, line int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if line > 0 && l.at != nil {
		line = max(0, l.at(line))
	}
	if key := fmt.Sprint(rule, line, text); l.told[key] {
		return
	} else if line > 0 {
		l.told[key] = true
	}
	if l.at == nil && line > 0 {
		text, line = fmt.Sprintf("line %d: %s", line, text), 0
	}
	if l.what != "" {
		text = l.what + ": " + text
	}
	*l.found = append(*l.found, Finding{Rule: rule, Fails: fails, Line: line, Text: text})
}

// installed is what is known once all of the user data is read: the first minor of Kubernetes that it
// names, -1 for none, and its line.
type installed struct {
	minor, line int
	kubelet     int  // minor of the kubelet, -1: not known
	ownName     bool // a machine joins under a name that is made at boot
	later       []func()
	joinFiles   map[string]bool // kubeadm's files that are written, by path: whether a JoinConfiguration may be in them
}

// judge says what depends on the whole.
func (s *installed) judge(l *linter) {
	s.kubelet = s.minor
	if own, ok := cluster.MinorOf(l.Version); ok {
		s.kubelet, s.line = own, 0
	}
	l.skew()
	for _, judge := range s.later {
		judge()
	}
}

// skew judges the kubelet against the API server that it would join.
func (l *linter) skew() {
	server, known := cluster.MinorOf(l.APIServerVersion)
	if !known || l.seen.kubelet < 0 {
		return
	}
	if why := userdata.Skew(l.seen.kubelet, server); why != "" {
		l.add(Skewed, true, l.seen.line, "%s", why)
	}
}

// twoLabels are the bytes of two labels that are as long as a label may be (253+1+63+1+63), in base64.
const twoLabels = 1024

func (l *linter) size(data []byte) {
	limit := userdata.Limit(l.Cloud)
	if limit == 0 {
		return
	}
	switch n := len(data); {
	case n > limit:
		l.add(Size, true, 0, "%d bytes, and %s takes at most %d before base64: use the format cloud-config or ignition, which compress the script, or fetch the rest at boot", n, l.Cloud, limit)
	case n > limit-twoLabels:
		l.add(Size, false, 0, "%d of %d bytes: two more labels may not fit", n, limit)
	}
}

// document unpacks user data and tells Ignition, which is JSON, from what cloud-init reads.
func (l *linter) document(data []byte) {
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		if text, err := userdata.Gunzip(bytes.NewReader(data)); err == nil {
			data = text
		} else {
			l.add(Schema, true, 0, "gzip that does not unpack: %v", err)
			return
		}
		if l.System == "flatcar" {
			l.add(Schema, true, 0, "Flatcar does not unpack gzip user data: give it as it is, with compressed files inside")
		}
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		l.ignition(string(data))
		return
	}
	b := newBoot(l)
	b.message(l, data)
	b.finish()
}
