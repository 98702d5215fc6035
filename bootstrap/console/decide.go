package console

import (
	"fmt"
	"strings"
)

// Mark is one boot phase that the user data told of.
type Mark struct {
	Phase  string            `json:"phase"`
	Values map[string]string `json:"values,omitempty"`
	// Text is the mark as it was written, without what a terminal would act on.
	Text string `json:"text"`
}

// Diagnosis is what a console tells of a join.
type Diagnosis struct {
	// Marks are those of the last boot, in their order, each once where it was repeated.
	Marks []Mark `json:"marks,omitempty"`
	// Where says how far the machine came, Likely what is wrong, Remedy what to do. Likely
	// is empty where nothing is.
	Where  string `json:"where"`
	Likely string `json:"likely,omitempty"`
	Remedy string `json:"remedy,omitempty"`
	// Reason is the one that the user data gave for its last failure, or the name of what stopped the
	// machine before; empty: none.
	Reason string `json:"reason,omitempty"`
	// Joined tells that the user data came to its end.
	Joined bool `json:"joined,omitempty"`
}

// String is the diagnosis in one line.
func (d Diagnosis) String() string {
	text := d.Where
	if d.Likely != "" {
		text += ": " + d.Likely
	}
	if d.Remedy != "" {
		text += " (" + d.Remedy + ")"
	}
	return text
}

const (
	marker    = "autoscaler-agent: phase="
	maxMarks  = 200
	maxMark   = 160 // bytes
	maxValues = 8
)

// Diagnose reads a console. pending tells that the machine does not run yet.
func Diagnose(text string, pending bool) Diagnosis {
	marks, earlier := marksOf(text)
	d := Diagnosis{Marks: marks}
	if len(marks) == 0 {
		d.Where, d.Likely, d.Remedy = unmarked(text, pending)
		d.Reason = noBoot(text)
		return d
	}
	last := marks[len(marks)-1]
	for n := len(marks) - 2; n >= 0 && last.Phase == "failed" && last.Values["reason"] == ""; n-- {
		// A script that ends tells its exit code after the reason.
		if marks[n].Phase != "failed" {
			break
		}
		last = marks[n]
	}
	before := ""
	for _, m := range marks {
		if m.Phase != "failed" && m.Phase != "warning" {
			before = m.Text
		}
	}
	switch last.Phase {
	case "failed":
		d.Where = fmt.Sprintf("the user data failed after %q with %q", before, last.Text)
		d.Reason = last.Values["reason"]
		d.Likely, d.Remedy = failure(last)
	case "joined", "already-joined":
		d.Where = fmt.Sprintf("the user data came to its end (%q)", last.Text)
		d.Joined = true
		d.Likely = "the machine has its certificate; a Node that is missing or NotReady is the kubelet's matter"
		d.Remedy = "autoscaler-agent explain node NAME; kubectl get csr; on the machine journalctl -u kubelet"
	default:
		d.Where = fmt.Sprintf("the user data is, or hangs, in %q", last.Text)
		d.Likely, d.Remedy = hanging(last)
		if last.Phase == "retry" && last.Values["reason"] != "" {
			earlier = last
		}
		if earlier.Phase != "" { // the unit, or the script, tries again what has failed
			d.Reason = earlier.Values["reason"]
			d.Where = fmt.Sprintf("the user data tries again (%q) after %q", last.Text, earlier.Text)
			d.Likely, d.Remedy = failure(earlier)
		}
	}
	return d
}

// unmarked is for a console on which the user data has written nothing.
func unmarked(text string, pending bool) (where, likely, remedy string) {
	switch {
	case strings.TrimSpace(text) == "" && pending:
		return "the console is empty", "the machine does not run yet", "wait"
	case strings.TrimSpace(text) == "":
		return "the console is empty", "the cloud shows it some minutes late, or the image writes to no serial console", "ask again in five minutes"
	}
	switch noBoot(text) {
	case "kernel-panic":
		return "the kernel panicked", "the image does not fit the machine", "look at the image and the instance type"
	case "emergency-mode":
		return "the machine is in emergency mode", "a disk or a mount of the image failed", "look at the console itself"
	case "boot-loader":
		return "the boot loader stopped", "the disk has no system that boots", "look at the image"
	}
	return "the machine boots, and its user data has written nothing", "the user data is not the agent's, is not run by this image, or waits for the network",
		"autoscaler-agent userdata render; compare it with that of the launch template or server"
}

// noBoot names what stops a machine before its user data; empty: nothing that is known.
func noBoot(text string) string {
	switch {
	case strings.Contains(text, "Kernel panic"):
		return "kernel-panic"
	case strings.Contains(text, "emergency mode") || strings.Contains(text, "dracut-emergency"):
		return "emergency-mode"
	case strings.Contains(text, "grub rescue>"):
		return "boot-loader"
	}
	return ""
}

// marksOf finds the marks of the last start of the script. The unit starts it again where it has
// failed, and so does a boot: earlier is the last failure before that, unless the script has come
// past that phase since.
func marksOf(text string) (out []Mark, earlier Mark) {
	phase, at := "", "" // the last phase, and the one that earlier failed in
	for line := range strings.Lines(text) {
		_, rest, ok := strings.Cut(line, marker)
		if !ok {
			continue
		}
		m := markOf(rest)
		switch {
		case m.Phase == "":
			continue
		case m.Phase == "start":
			out, phase = out[:0], ""
		case len(out) > 0 && out[len(out)-1].Text == m.Text:
			continue // the console shows what a unit prints, too
		}
		switch m.Phase {
		case "failed", "retry":
			if m.Values["reason"] != "" {
				earlier, at = m, phase
			}
		case "warning":
		default:
			if phase == at && m.Phase != at {
				earlier, at = Mark{}, ""
			}
			phase = m.Phase
		}
		if out = append(out, m); len(out) > maxMarks {
			out = out[1:]
		}
	}
	return out, earlier
}

func markOf(rest string) Mark {
	rest = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, strings.TrimRight(rest, "\r\n"))
	if len(rest) > maxMark {
		rest = rest[:maxMark]
	}
	words := strings.Fields(rest)
	if len(words) == 0 || strings.Trim(words[0], "abcdefghijklmnopqrstuvwxyz-") != "" {
		return Mark{}
	}
	m := Mark{Phase: words[0], Text: words[0]}
	for _, w := range words[1:min(len(words), maxValues+1)] {
		key, value, ok := strings.Cut(w, "=")
		if !ok || key == "" || key == "token" {
			break // a terminal's own text may follow on the line
		}
		if m.Values == nil {
			m.Values = map[string]string{}
		}
		m.Values[key] = value
		m.Text += " " + w
	}
	return m
}
