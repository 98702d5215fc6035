// Package lint judges user data of any origin, also after changes by hand,
// before it reaches a launch template.
//
// It refuses to run what it reads, to look at files or networks, and to repeat a secret in a
// finding. Its list of faults is what has been seen to strand machines or to leak tokens; user
// data without a finding is not proven good.
package lint

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// The rules. docs/userdata.md lists them.
const (
	Size      = "W1"  // bytes that the cloud takes
	Secret    = "W2"  // a secret other than a join token that expires
	EveryBoot = "W3"  // runs at every boot and is not guarded
	API       = "W4"  // kubeadm's configuration against the version of Kubernetes
	Shell     = "W5"  // syntax of shell scripts
	Schema    = "W6"  // form of cloud-config, MIME and Ignition
	Unchecked = "W7"  // a download that nothing checks
	Exposed   = "W8"  // a token in arguments, traces or readable files
	NoEffect  = "W9"  // settings that do nothing or are gone
	JoinInfo  = "W10" // join values that are missing or trust anybody
	ReadOnly  = "W11" // a path that the system does not let anybody write
)

// Finding is one fault.
type Finding struct {
	Rule string `json:"rule"`
	// Fails tells that a machine with this user data would not join, or would give a
	// secret away; else the finding is a warning.
	Fails bool   `json:"fails"`
	Line  int    `json:"line,omitempty"` // of the script or document, from 1; 0 for the whole
	Text  string `json:"text"`
}

// Options say what the user data is for; each may be empty.
type Options struct {
	Cloud, System string
	// Version is that of Kubernetes; "" takes the one that the user data names.
	Version string
}

// Check returns the findings, those of the whole first and the others by line.
func Check(data []byte, o Options) []Finding {
	l := &linter{Options: o}
	l.size(data)
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		text, err := userdata.Gunzip(bytes.NewReader(data))
		if err != nil {
			l.add(Schema, true, 0, "gzip that does not unpack: %v", err)
			return l.found
		}
		if o.System == "flatcar" {
			l.add(Schema, true, 0, "Flatcar does not unpack gzip user data: give it as it is, with compressed files inside")
		}
		data = text
	}
	l.document(data)
	return l.found
}

type linter struct {
	Options
	found []Finding
}

func (l *linter) add(rule string, fails bool, line int, format string, args ...any) {
	l.found = append(l.found, Finding{Rule: rule, Fails: fails, Line: line, Text: fmt.Sprintf(format, args...)})
}

func (l *linter) size(data []byte) {
	limit := userdata.Limit(l.Cloud)
	if limit == 0 {
		return
	}
	switch n := len(data); {
	case n > limit:
		l.add(Size, true, 0, "%d bytes, and %s takes at most %d before base64: use the format cloud-config or ignition, which compress the script, or fetch the rest at boot", n, l.Cloud, limit)
	case n > limit*9/10:
		l.add(Size, false, 0, "%d of %d bytes: a longer label or token may not fit", n, limit)
	}
}

// document judges one piece of user data by its first bytes, as cloud-init does.
func (l *linter) document(data []byte) {
	text := string(data)
	switch {
	case strings.HasPrefix(text, "#!"):
		l.script(text, true)
	case strings.HasPrefix(text, "#cloud-config"):
		l.cloudConfig(text)
	case strings.HasPrefix(strings.TrimSpace(text), "{"):
		l.ignition(text)
	case mimeHead(text):
		l.mime(text)
	default:
		l.add(Schema, true, 1, "neither #!, #cloud-config, MIME nor Ignition: the machine would ignore it")
	}
}
